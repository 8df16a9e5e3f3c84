"""The output of containers, from agents to the stream of logs."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import ShortText
from pilotlight_core.model.messages.message import Message


class LogLine(msgspec.Struct, frozen=True):
    """One line of a container's output. `at` is unix seconds, `stream` is "stdout", "stderr" or "platform"."""

    at: Annotated[float, Meta(ge=0, le=1e11)]
    stream: ShortText
    text: str
    container: ShortText
    call_id: ShortText = msgspec.field(default="", name="call")

    @property
    def text_bytes(self) -> int:
        """The length of its text in UTF-8, in which it is sent and stored."""
        return len(self.text) if self.text.isascii() else len(self.text.encode())


class LogBatch(Message, frozen=True, kw_only=True):
    lines: tuple[LogLine, ...]
