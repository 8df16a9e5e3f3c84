"""Log lines."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.messages.wire import encode


@pytest.mark.parametrize(("text", "size"), [("", 0), ("x" * 100, 100), ("\ufffd" * 100, 300), ("a\U0001f525", 5)])
def test_a_text_is_as_long_as_it_is_on_the_bus(text: str, size: int) -> None:
    """In bytes, however many characters they are."""
    empty, line = (LogLine(at=0.0, stream="stdout", text=one, container="c") for one in ("", text))

    assert line.text_bytes == size
    assert 0 <= len(encode(LogBatch(lines=(line,)))) - len(encode(LogBatch(lines=(empty,)))) - size <= 2
