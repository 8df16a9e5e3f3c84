"""Answers of `/v1/chat/completions`: whole, and chunk by chunk."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.http.openai.answer_forms import (
    DONE,
    AnswerHead,
    Json,
    encode_json,
    error_event,
    logprobs_document,
    sse,
    usage_document,
)
from pilotlight_gateway.http.openai.generated_text import CalledTool, GeneratedText
from pilotlight_gateway.http.openai.generation_chunks import (
    ChunkUsage,
    GenerationChunk,
    ToolCallPart,
    finish_of,
    tokens_of,
)

CHUNK = "chat.completion.chunk"


def chat_document(head: AnswerHead, text: GeneratedText, usage: ChunkUsage | None) -> Json:
    """A whole answer."""
    message: Json = {"role": "assistant", "content": text.text or (None if text.tools else ""), "refusal": None}
    if text.tools:
        message["tool_calls"] = [tool_document(called, number) for number, called in sorted(text.tools.items())]
    choice: Json = {
        "index": 0,
        "message": message,
        "logprobs": logprobs_document(tuple(text.logprobs)) if text.logprobs else None,
        "finish_reason": text.finish,
    }
    document: Json = {**_head(head, "chat.completion"), "choices": [choice]}
    if (counted := text.usage or usage) is not None:
        document["usage"] = usage_document(counted)
    return document


def tool_document(called: CalledTool, number: int) -> Json:
    """A call of a tool in a whole answer."""
    function = {"name": called.name, "arguments": "".join(called.arguments)}
    return {"id": called.id or f"call_{number}", "type": "function", "function": function}


class ChatStream:
    """Writes the events of one answer."""

    def __init__(self, head: AnswerHead, *, include_usage: bool, usage_so_far: bool = False) -> None:
        """`usage_so_far`: each chunk tells the tokens up to it; those of the prompt are known at the end."""
        self._head = _head(head, CHUNK)
        self._usage = include_usage
        self.counts_tokens = usage_so_far
        self._tokens = 0
        # Most chunks are text alone: what is the same in all of them is written once.
        around = self._event({"index": 0, "delta": {"content": "\0"}, "logprobs": None, "finish_reason": None})
        self._before, _, self._after = around.partition(encode_json("\0"))
        self._finish: str | None = None
        self._counted: ChunkUsage | None = None
        self._called: set[int] = set()

    def begin(self) -> bytes:
        return self._delta({"role": "assistant", "content": "", "refusal": None})

    def chunk(self, chunk: GenerationChunk) -> bytes:
        self._finish = chunk.finish_reason or self._finish
        self._counted = chunk.usage or self._counted
        if self.counts_tokens:
            self._tokens += tokens_of(chunk)
            if not chunk.text and not chunk.tool_calls and not chunk.logprobs:
                return b""
        elif not chunk.tool_calls and not chunk.logprobs:
            return self._before + encode_json(chunk.text) + self._after if chunk.text else b""
        delta: Json = {"content": chunk.text} if chunk.text or not chunk.tool_calls else {}
        if chunk.tool_calls:
            delta["tool_calls"] = [self._tool(part) for part in chunk.tool_calls]
        return self._delta(delta, logprobs_document(chunk.logprobs) if chunk.logprobs else None)

    def end(self, usage: ChunkUsage | None, fallback: str = "") -> bytes:
        self._head["system_fingerprint"] = fallback or self._head["system_fingerprint"]
        finish = finish_of(self._finish or ("tool_calls" if self._called else None))
        last = self._event({"index": 0, "delta": {}, "logprobs": None, "finish_reason": finish})
        if self._usage and (counted := self._counted or usage) is not None:
            last += sse({**self._head, "choices": [], "usage": usage_document(counted)})
        return last + DONE

    def fail(self, error: Json) -> bytes:
        return error_event(error)

    def _tool(self, part: ToolCallPart) -> Json:
        function: Json = {"arguments": part.arguments}
        if part.index in self._called:
            return {"index": part.index, "function": function}
        self._called.add(part.index)
        function = {"name": part.name, **function}
        return {"index": part.index, "id": part.id or f"call_{part.index}", "type": "function", "function": function}

    def _delta(self, delta: Json, logprobs: Json | None = None) -> bytes:
        return self._event({"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": None})

    def _event(self, choice: Json) -> bytes:
        more: dict[str, Any] = {"usage": None} if self._usage else {}
        if self._tokens:
            more = {"usage": usage_document(self._counted or ChunkUsage(completion_tokens=self._tokens))}
        return sse({**self._head, "choices": [choice], **more})


def _head(head: AnswerHead, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{head.call_id}", "object": kind, "created": head.created_at, "model": head.model,
        "system_fingerprint": head.version,
    }  # fmt: skip
