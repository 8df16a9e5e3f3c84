"""The text of one answer: tokens in, pieces out, until a stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pilotlight_engine.text.detokenizer import Detokenizer
from pilotlight_engine.text.stop_strings import StopStrings
from pilotlight_engine.text.text_tokenizer import TextTokenizer
from pilotlight_engine.text.tool_calls import ToolCalls


@dataclass(kw_only=True)
class AnswerPiece:
    """What a token has added."""

    text: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    has_stopped: bool = False
    """A stop string has come: nothing of the answer is behind it."""


class AnswerText:
    """One answer; the same tokens give the same pieces. `tools_of` is the id of a call that may call tools."""

    def __init__(self, tokenizer: TextTokenizer, stops: Sequence[str], tools_of: str = "") -> None:
        self._detokenizer = Detokenizer(tokenizer)
        self._stops = StopStrings(stops)
        self._tools = ToolCalls(tools_of) if tools_of else None

    def add(self, token: int) -> AnswerPiece:
        """Take the next token, which is no end token."""
        return self._piece(self._stops.add(self._detokenizer.add(token)))

    def flush(self) -> AnswerPiece:
        """The answer has ended: what was kept comes now."""
        text = self._stops.add(self._detokenizer.flush())
        if not self._stops.has_stopped:
            text += self._stops.flush()
        piece = self._piece(text)
        if self._tools is not None:
            last = self._tools.flush()
            piece.text += last.text
            piece.calls += last.calls
        return piece

    @property
    def has_tool_calls(self) -> bool:
        """Whether it has called a tool."""
        return self._tools is not None and self._tools.count > 0

    def _piece(self, text: str) -> AnswerPiece:
        stopped = self._stops.has_stopped
        if self._tools is None or not text:
            return AnswerPiece(text=text, has_stopped=stopped)
        found = self._tools.add(text)
        return AnswerPiece(text=found.text, calls=found.calls, has_stopped=stopped)
