"""What a function yields that generates text: a text, or a document with what else is known of it.

Chunks are a tenant's word, and are read into these types before anything of them is passed on.
"""

from __future__ import annotations

import msgspec

from pilotlight_core.model.errors import BadOutput

MOST_DOCUMENT_BYTES = 128 * 1024
"""Of a chunk that is more than a text: reading it takes some milliseconds at worst."""
FINISHES = ("stop", "length", "tool_calls", "content_filter")


class TopToken(msgspec.Struct, frozen=True):
    """A token that might have been."""

    token: str
    logprob: float
    id: int = 0


class TokenLogprob(msgspec.Struct, frozen=True):
    """A token with how likely it was, and what else was."""

    token: str
    logprob: float
    id: int = 0
    top: tuple[TopToken, ...] = ()


class ToolCallPart(msgspec.Struct, frozen=True):
    """A piece of a call of a tool: the first has its id and name, and each some of its arguments."""

    index: int = 0
    id: str = ""
    name: str = ""
    arguments: str = ""


class ChunkUsage(msgspec.Struct, frozen=True):
    """Tokens that were used."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


class GenerationChunk(msgspec.Struct, frozen=True):
    """A piece of an answer. The last one has `finish_reason` and `usage`, if the function knows them."""

    text: str = ""
    logprobs: tuple[TokenLogprob, ...] = ()
    tool_calls: tuple[ToolCallPart, ...] = ()
    finish_reason: str | None = None
    usage: ChunkUsage | None = None


class CountedChunk(GenerationChunk, frozen=True):
    """The same, with its tokens, of which there may be several in a chunk."""

    token_ids: msgspec.Raw = msgspec.Raw(b"")
    """A list, which is not read."""


_counting_decoder = msgspec.msgpack.Decoder(str | CountedChunk)
_decoder = msgspec.msgpack.Decoder(str | GenerationChunk)


def read_chunk(data: bytes, *, counting: bool = False) -> GenerationChunk:
    """The chunk in these bytes of msgpack; `counting`: with its tokens.

    Raises:
        BadOutput: it is neither a text nor such a document.
    """
    try:
        if len(data) > MOST_DOCUMENT_BYTES and not is_text(data):
            raise BadOutput(
                f"The function yielded a chunk of {len(data)} bytes: more than {MOST_DOCUMENT_BYTES} may only be text."
            )
        chunk = _counting_decoder.decode(data) if counting else _decoder.decode(data)
    except msgspec.ValidationError as error:
        raise BadOutput(
            f"The function yielded neither a text nor a chunk with text, token_ids, finish_reason and usage: {error}."
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadOutput("The function yielded what cannot be read.") from None
    return GenerationChunk(chunk) if isinstance(chunk, str) else chunk


def tokens_of(chunk: GenerationChunk) -> int:
    """How many tokens a chunk has; 0: it does not say."""
    if not isinstance(chunk, CountedChunk):
        return 0
    head = bytes(memoryview(chunk.token_ids)[:5])
    first = head[0] if head else 0
    if 0x90 <= first <= 0x9F:
        return first & 0x0F
    return int.from_bytes(head[1:3] if first == 0xDC else head[1:]) if first in (0xDC, 0xDD) else 0


def is_text(data: bytes) -> bool:
    """Whether a value in msgpack is a string."""
    first = data[0] if data else 0
    return 0xA0 <= first <= 0xBF or 0xD9 <= first <= 0xDB


def finish_of(reason: str | None) -> str:
    """A reason as OpenAI's clients know it."""
    return reason if reason in FINISHES else "stop"


def usage_of_units(units: dict[str, int] | None) -> ChunkUsage | None:
    """Tokens that a function has counted, each once; None: it has counted none. Cached ones are of the prompt too."""
    if not units or ("completion_tokens" not in units and "prompt_tokens" not in units):
        return None
    cached = units.get("cached_tokens", 0)
    return ChunkUsage(units.get("prompt_tokens", 0) + cached, units.get("completion_tokens", 0), cached)
