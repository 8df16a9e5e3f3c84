"""Calls of tools in an answer, as Hermes and Qwen models write them, taken out as they come.

    <tool_call>
    {"name": "weather", "arguments": {"city": "Oslo"}}
    </tool_call>

The arguments are passed on as text while they come. What does not look like that is text as any other.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from pilotlight_engine.text.tool_call_head import HeadState, ToolCallHead

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MAX_CALL = 64 * 1024
"""Characters of one call; longer ones are text."""


@dataclass(kw_only=True)
class ToolPiece:
    """What came of a piece of text."""

    text: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """`index`, and `id` and `name` of a call that begins, and `arguments`: text to append."""


class ToolCalls:
    """Parts the text of one answer; `call_id` makes the ids of its calls, the same wherever it goes on."""

    def __init__(self, call_id: str) -> None:
        self._call_id = call_id
        self._kept = ""
        self._in_call = False
        self._head = ToolCallHead()
        """Of the call that is read now."""
        self._looked = 0
        """In how much of what is kept of it there is no CLOSE."""
        self._arguments: _JsonEnd | None = None
        """Where the arguments end that are passed on now; None: none are."""
        self.count = 0
        """Calls that have begun."""

    def add(self, text: str) -> ToolPiece:
        """Take the next piece of text."""
        piece = ToolPiece()
        self._kept += text
        while self._advance(piece):
            pass
        return piece

    def flush(self) -> ToolPiece:
        """The answer has ended: what was kept is a call, if it is whole, or text."""
        piece = self.add("")
        kept, self._kept = self._kept, ""
        if self._in_call and self._arguments is None:
            if not self._take_whole(kept, piece):
                piece.text += OPEN + kept
        elif not self._in_call:
            piece.text += kept
        self._in_call, self._arguments = False, None
        return piece

    def _advance(self, piece: ToolPiece) -> bool:
        """Take a step in what is kept; whether there may be another one."""
        if self._arguments is not None:
            return self._pass_arguments(self._arguments, piece)
        if self._in_call:
            return self._read_call(piece)
        before, found, behind = self._kept.partition(OPEN)
        if found:
            piece.text += before.rstrip("\n")  # lines between calls are not said
            self._kept, self._in_call = behind, True
            self._head, self._looked = ToolCallHead(), 0
            return True
        kept = next((n for n in range(min(len(OPEN) - 1, len(before)), 0, -1) if before.endswith(OPEN[:n])), 0)
        said = before[: len(before) - kept].rstrip("\n")
        piece.text += said
        self._kept = before[len(said) :]
        return False

    def _read_call(self, piece: ToolPiece) -> bool:
        head = self._head
        if head.state is HeadState.OPEN:
            head.add(self._kept[head.read :])
        if head.state is HeadState.WHOLE:
            self._begin(head.name, piece)
            self._kept, self._arguments = self._kept[head.read :], _JsonEnd()
            return True
        end = self._kept.find(CLOSE, self._looked)
        if end >= 0:
            body = self._kept[:end]
            if not self._take_whole(body, piece):
                piece.text += OPEN + body + CLOSE
            self._kept, self._in_call = self._kept[end + len(CLOSE) :], False
            return True
        self._looked = max(0, len(self._kept) - len(CLOSE) + 1)
        if len(self._kept) > MAX_CALL:
            piece.text += OPEN + self._kept
            self._kept, self._in_call = "", False
        return False

    def _pass_arguments(self, end: _JsonEnd, piece: ToolPiece) -> bool:
        """Pass on the arguments' text; behind their end comes nothing but `}` and CLOSE, which are dropped."""
        if not end.has_ended:
            taken = end.add(self._kept)
            if taken:
                self._append(self._kept[:taken], piece)
            self._kept = self._kept[taken:]
        if not end.has_ended:
            return False
        _, found, rest = self._kept.partition(CLOSE)
        if not found:
            self._kept = self._kept[-len(CLOSE) :]
            return False
        self._kept, self._in_call, self._arguments = rest, False, None
        return True

    def _take_whole(self, body: str, piece: ToolPiece) -> bool:
        """A call that is there at once, in whatever order; False: it is none."""
        try:
            read = json.loads(body)
        except (ValueError, RecursionError):
            return False
        if not isinstance(read, dict) or not isinstance(read.get("name"), str):
            return False
        arguments = read.get("arguments", read.get("parameters", {}))
        self._begin(read["name"], piece)
        self._append(arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False), piece)
        return True

    def _begin(self, name: str, piece: ToolPiece) -> None:
        made = hashlib.sha256(f"{self._call_id}/{self.count}".encode()).hexdigest()[:24]
        piece.calls.append({"index": self.count, "id": f"call_{made}", "name": name, "arguments": ""})
        self.count += 1

    def _append(self, text: str, piece: ToolPiece) -> None:
        index = self.count - 1
        if piece.calls and piece.calls[-1]["index"] == index:
            piece.calls[-1]["arguments"] += text
        else:
            piece.calls.append({"index": index, "arguments": text})


class _JsonEnd:
    """Finds the end of one JSON object in text that comes in pieces."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self.has_ended = False

    def add(self, text: str) -> int:
        """How many characters of the text are in the object."""
        for place, one in enumerate(text):
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif one == "\\":
                    self._escaped = True
                elif one == '"':
                    self._in_string = False
            elif one == '"':
                self._in_string = True
            elif one in "{[":
                self._depth += 1
            elif one in "}]":
                self._depth -= 1
                if not self._depth:
                    self.has_ended = True
                    return place + 1
        return len(text)
