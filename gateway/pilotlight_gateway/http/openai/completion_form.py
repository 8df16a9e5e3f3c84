"""Answers of `/v1/completions`: whole, and chunk by chunk."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.http.openai.answer_forms import DONE, AnswerHead, Json, error_event, sse, usage_document
from pilotlight_gateway.http.openai.generated_text import GeneratedText
from pilotlight_gateway.http.openai.generation_chunks import (
    ChunkUsage,
    GenerationChunk,
    TokenLogprob,
    finish_of,
    tokens_of,
)


def completion_document(head: AnswerHead, text: GeneratedText, usage: ChunkUsage | None) -> Json:
    """A whole answer."""
    document = {**_head(head), "choices": [_choice(text.text, tuple(text.logprobs), 0, text.finish)]}
    if (counted := text.usage or usage) is not None:
        document["usage"] = usage_document(counted)
    return document


class CompletionStream:
    """Writes the events of one answer."""

    def __init__(self, head: AnswerHead, *, include_usage: bool, usage_so_far: bool = False) -> None:
        """As of a chat."""
        self._head = _head(head)
        self._usage = include_usage
        self.counts_tokens = usage_so_far
        self._tokens = 0
        self._finish: str | None = None
        self._counted: ChunkUsage | None = None
        self._written = 0

    def begin(self) -> bytes:
        return b""

    def chunk(self, chunk: GenerationChunk) -> bytes:
        self._finish = chunk.finish_reason or self._finish
        self._counted = chunk.usage or self._counted
        if self.counts_tokens:
            self._tokens += tokens_of(chunk)
        if not chunk.text and not chunk.logprobs:
            return b""
        event = self._event(_choice(chunk.text, chunk.logprobs, self._written, None))
        self._written += len(chunk.text)
        return event

    def end(self, usage: ChunkUsage | None, fallback: str = "") -> bytes:
        self._head["system_fingerprint"] = fallback or self._head["system_fingerprint"]
        last = self._event(_choice("", (), 0, finish_of(self._finish)))
        if self._usage and (counted := self._counted or usage) is not None:
            last += sse({**self._head, "choices": [], "usage": usage_document(counted)})
        return last + DONE

    def fail(self, error: Json) -> bytes:
        return error_event(error)

    def _event(self, choice: Json) -> bytes:
        more: dict[str, Any] = {"usage": None} if self._usage else {}
        if self._tokens:
            more = {"usage": usage_document(self._counted or ChunkUsage(completion_tokens=self._tokens))}
        return sse({**self._head, "choices": [choice], **more})


def _choice(text: str, logprobs: tuple[TokenLogprob, ...], offset: int, finish: str | None) -> Json:
    told = _logprobs(logprobs, offset) if logprobs else None
    return {"index": 0, "text": text, "logprobs": told, "finish_reason": finish}


def _logprobs(tokens: tuple[TokenLogprob, ...], offset: int) -> Json:
    offsets = []
    for one in tokens:
        offsets.append(offset)
        offset += len(one.token)
    return {
        "tokens": [one.token for one in tokens],
        "token_logprobs": [one.logprob for one in tokens],
        "top_logprobs": [{other.token: other.logprob for other in one.top} for one in tokens],
        "text_offset": offsets,
    }


def _head(head: AnswerHead) -> Json:
    return {
        "id": f"cmpl-{head.call_id}", "object": "text_completion", "created": head.created_at, "model": head.model,
        "system_fingerprint": head.version,
    }  # fmt: skip
