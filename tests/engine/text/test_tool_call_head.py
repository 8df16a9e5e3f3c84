"""The beginning of a tool's call."""

from __future__ import annotations

import pytest

from pilotlight_engine.text.tool_call_head import HeadState, ToolCallHead

HEAD = '\n { "name" : "a \\"b\\" \\u00e9", "parameters":\n'


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_it_is_whole_before_the_brace_of_its_arguments(size: int) -> None:
    """However it comes; what is behind it is not read."""
    head, text = ToolCallHead(), HEAD + '{"x": 1}}'
    for at in range(0, len(text), size):
        head.add(text[head.read : at + size])

    assert (head.state, head.name, head.read) == (HeadState.WHOLE, 'a "b" é', len(HEAD))


@pytest.mark.parametrize(
    "text",
    ['{"x', '{"name": 1', '{"name": "a\\q"', '{"name": "a\nb"', '{"name": "f", "i', '{"name": "f", "arguments": "'],
)
def test_what_cannot_become_one_is_another(text: str) -> None:
    """As soon as it shows; a name that is no JSON too."""
    head = ToolCallHead()
    states = []
    for piece in (text[:-1], text[-1:]):
        head.add(piece)
        states.append(head.state)

    assert states == [HeadState.OPEN, HeadState.OTHER]


def test_more_may_come() -> None:
    for end in range(len(HEAD)):
        head = ToolCallHead()
        head.add(HEAD[:end])
        assert (head.state, head.read) == (HeadState.OPEN, end)
