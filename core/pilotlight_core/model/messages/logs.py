"""The output of containers, from agents to the stream of logs."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.agent_messages import Message


class LogLine(msgspec.Struct, frozen=True):
    """One line of a container's output. `at` is unix seconds, `stream` is "stdout", "stderr" or "platform"."""

    at: float
    stream: str
    text: str
    container: str
    call_id: str = msgspec.field(default="", name="call")


class LogBatch(Message, frozen=True, kw_only=True):
    lines: tuple[LogLine, ...]
