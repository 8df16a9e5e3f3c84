"""The beginning of a tool's call, up to its arguments, read a character once however it comes in pieces."""

from __future__ import annotations

import json
from enum import Enum, auto

SPACE = " \t\n\r\f\v"
PARTS = ("{", '"name"', ":", "", ",", "arguments", ":", "{")
"""What comes in turn, with space before each: "" is the name, as a string; "arguments" either of ARGUMENTS."""
NAME_PART, ARGUMENTS_PART = PARTS.index(""), PARTS.index("arguments")
ARGUMENTS = ('"arguments"', '"parameters"')


class HeadState(Enum):
    OPEN = auto()  # more has to come
    WHOLE = auto()  # the name is known, and the arguments' brace is next
    OTHER = auto()  # it is none, whatever comes


class ToolCallHead:
    """Reads `{"name": "…", "arguments": {`."""

    def __init__(self) -> None:
        self.state = HeadState.OPEN
        self.name = ""
        self.read = 0
        """Characters so far; the brace of the arguments is not one of them."""
        self._part = 0
        self._begun: list[str] = []
        """Characters of the part that is read now."""
        self._escaped = False

    def add(self, text: str) -> None:
        """Take the text behind what was read."""
        for one in text:
            if self.state is not HeadState.OPEN:
                return
            self._take(one)
            self.read += self.state is HeadState.OPEN

    def _take(self, one: str) -> None:
        if not self._begun and one in SPACE:
            return
        if self._part == len(PARTS) - 1:
            self.state = HeadState.WHOLE if one == "{" else HeadState.OTHER
            return
        self._begun.append(one)
        if self._part == NAME_PART:
            self._take_name(one)
            return
        begun = "".join(self._begun)
        wanted = ARGUMENTS if self._part == ARGUMENTS_PART else (PARTS[self._part],)
        if begun in wanted:
            self._next_part()
        elif not any(each.startswith(begun) for each in wanted):
            self.state = HeadState.OTHER

    def _take_name(self, one: str) -> None:
        if len(self._begun) == 1:
            self.state = HeadState.OPEN if one == '"' else HeadState.OTHER
        elif self._escaped:
            self._escaped = False
        elif one == "\\":
            self._escaped = True
        elif one == '"':
            try:
                self.name = json.loads("".join(self._begun))
            except ValueError:  # a string to the eye only
                self.state = HeadState.OTHER
                return
            self._next_part()

    def _next_part(self) -> None:
        self._part, self._begun = self._part + 1, []
