"""One answer: tokens become chunks, of which the last says how it ended and what it took. Knows no engine, no time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilotlight_engine.engine_port import TokenOut
from pilotlight_engine.serving.generation_reader import GenerationRead
from pilotlight_engine.text.answer_text import AnswerPiece, AnswerText
from pilotlight_engine.text.text_tokenizer import TextTokenizer

AnswerChunk = dict[str, Any]


class GeneratedAnswer:
    """Makes the chunks of one answer; `call_id` names its tool calls."""

    def __init__(self, asked: GenerationRead, tokenizer: TextTokenizer, end_ids: frozenset[int], call_id: str) -> None:
        self._asked = asked
        self._tokenizer = tokenizer
        self._end_ids = frozenset() if asked.ignore_eos else end_ids
        self._text = AnswerText(tokenizer, asked.stops, call_id if asked.tools else "")
        self.tokens: list[int] = []
        """All so far."""
        self.has_stopped = False
        """A stop string has come, and the rest is not wanted."""

    @property
    def is_complete(self) -> bool:
        """Whether it has all tokens that it can have, as far as they tell."""
        tokens, asked = self.tokens, self._asked
        has_ended = bool(tokens) and tokens[-1] in self._end_ids and len(tokens) > asked.min_new
        return has_ended or len(tokens) >= asked.max_new

    def repeat(self, tokens: Sequence[int]) -> None:
        """These tokens were yielded before, elsewhere."""
        for token in tokens:
            self._add(token)

    def chunk(self, tokens: Sequence[TokenOut]) -> AnswerChunk:
        """The chunk of these tokens, up to the one in which a stop string ends."""
        said, calls, ids, logprobs = "", [], [], []
        for each in tokens:
            piece = self._add(each.token)
            said += piece.text
            calls += piece.calls
            ids.append(each.token)
            if each.logprob is not None:
                logprobs.append(self._logprob(each))
            if self.has_stopped:
                break
        made: AnswerChunk = {"text": said, "token_ids": ids}
        if logprobs:
            made["logprobs"] = logprobs
        if calls:
            made["tool_calls"] = calls
        return made

    def ended(self, chunk: AnswerChunk, *, is_cut: bool, cached: int) -> AnswerChunk:
        """The last chunk: `chunk` with what was kept, and how it ended. `is_cut`: there was no room for more."""
        last = self._text.flush()
        chunk["text"] += last.text
        if last.calls:
            chunk["tool_calls"] = chunk.get("tool_calls", []) + last.calls
        chunk["finish_reason"] = "length" if is_cut else "tool_calls" if self._text.has_tool_calls else "stop"
        chunk["usage"] = self.usage(cached)
        return chunk

    def usage(self, cached: int) -> dict[str, int]:
        """What it has taken so far."""
        return {
            "prompt_tokens": len(self._asked.prompt_ids),
            "completion_tokens": len(self.tokens),
            "cached_tokens": cached,
        }

    def _add(self, token: int) -> AnswerPiece:
        self.tokens.append(token)
        if token in self._end_ids:
            return AnswerPiece()  # its text is no part of the answer
        piece = self._text.add(token)
        self.has_stopped = self.has_stopped or piece.has_stopped
        return piece

    def _logprob(self, each: TokenOut) -> dict[str, Any]:
        text = self._tokenizer.token_text
        return {
            "token": text(each.token),
            "id": each.token,
            "logprob": each.logprob,
            "top": [{"token": text(token), "id": token, "logprob": value} for token, value in each.top],
        }
