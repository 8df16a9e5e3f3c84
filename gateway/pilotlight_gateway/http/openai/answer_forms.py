"""What a form does: it writes what a function generates as one of OpenAI's routes answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from pilotlight_gateway.http.openai.generation_chunks import ChunkUsage, GenerationChunk, TokenLogprob

Json = dict[str, Any]
DONE = b"data: [DONE]\n\n"
encode_json = msgspec.json.Encoder().encode


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerHead:
    """What every piece of an answer says."""

    call_id: str
    model: str
    created_at: int
    """Unix seconds."""
    version: str = ""
    """The ref of the version that answers."""


class StreamForm(Protocol):
    """Writes an answer piece by piece, as server-sent events."""

    @property
    def counts_tokens(self) -> bool:
        """Whether it needs the tokens of each chunk."""
        ...

    def begin(self) -> bytes:
        """What comes before the first chunk."""
        ...

    def chunk(self, chunk: GenerationChunk) -> bytes:
        """One chunk."""
        ...

    def end(self, usage: ChunkUsage | None, fallback: str = "") -> bytes:
        """What comes behind the last one.

        `usage` is what the call counted, if a chunk has not said it; `fallback` the ref of the version that answered in
        place of the one that was asked.
        """
        ...

    def fail(self, error: Json) -> bytes:
        """The error with which an answer breaks off, of which `error` is OpenAI's object."""
        ...


def sse(document: Any) -> bytes:
    """A server-sent event without a name: stock clients take any other for a chunk, and `id:` lines harm them."""
    return b"data: " + encode_json(document) + b"\n\n"


def error_event(error: Json) -> bytes:
    """The event by which stock clients raise."""
    return sse({"error": error})


def usage_document(usage: ChunkUsage) -> Json:
    """Tokens as chats and completions tell them."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def logprobs_document(tokens: tuple[TokenLogprob, ...]) -> Json:
    """Tokens with their logarithmic probabilities as chats tell them."""
    return {
        "content": [
            {
                **_token(one.token, one.logprob),
                "top_logprobs": [_token(other.token, other.logprob) for other in one.top],
            }
            for one in tokens
        ],
        "refusal": None,
    }


def _token(token: str, logprob: float) -> Json:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
