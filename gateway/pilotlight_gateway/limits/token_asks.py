"""How many tokens a call asks for, as far as that is known before it runs, by the document that it sends.

The text of prompts becomes tokens in containers alone, since the tokenizer is its function's. So those of a prompt are
estimated, four bytes each, and those of the answer are the most that it asks for. What it really took is counted when
it has ended (`limit_admission`). A document is one of generation if its function has parameters for a prompt and for
`max_tokens`, or one to embed if its answer counts `prompt_tokens`; of other functions nothing is known.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.limits import ReachedLimit
from pilotlight_core.model.spec import MethodSpec

BYTES_PER_TOKEN = 4
"""Of English text; of others a token has fewer characters and about as many bytes."""
MAX_TOKENS: Final = "max_tokens"
PROMPT_IDS: Final = "prompt_ids"
TEXTS = ("prompt", "messages")
INPUTS: Final = "input"
PROMPT_TOKENS: Final = "prompt_tokens"
TOO_MANY: Final = "too_many_tokens"
SHORT_HEADS = {0xDC: 2, 0xDD: 4}
"""Of msgpack: the first byte of a list that has its length in so many bytes behind."""

_named = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_any = msgspec.msgpack.Decoder(Any)
_encode = msgspec.msgpack.Encoder().encode


class TokenAsk(NamedTuple):
    """What a call asks for."""

    prompt: int
    """Of its prompt, estimated."""
    most: int | None
    """Of its answer; None: it does not say."""


def generates(method: MethodSpec) -> bool:
    """Whether its document is one of generation."""
    known = _parameters(method.input_schema)
    return MAX_TOKENS in known and (PROMPT_IDS in known or any(text in known for text in TEXTS))


def embeds(method: MethodSpec) -> bool:
    """Whether its document is one to embed."""
    return PROMPT_TOKENS in _parameters(method.output_schema) and INPUTS in _parameters(method.input_schema)


def token_ask(method: MethodSpec, arguments: bytes) -> TokenAsk | None:
    """What the arguments of a call ask for, which are msgpack and match its schema; None: nobody knows."""
    if generates(method):
        named = _named.decode(arguments)
        return TokenAsk(_prompt_of(named), _whole_number(named.get(MAX_TOKENS)))
    if embeds(method):
        return TokenAsk(_by_bytes(_named.decode(arguments).get(INPUTS)), 0)
    return None


def bounded_arguments(
    method: MethodSpec, arguments: bytes, tenant: str, prompt_tokens: int | None, output_tokens: int | None
) -> bytes:
    """The arguments, with the most tokens that an answer may have if they name none.

    Raises:
        BadInput: `too_many_tokens`: the prompt has more than `prompt_tokens`, or `max_tokens` is more than
            `output_tokens`.
    """
    ask = token_ask(method, arguments)
    if ask is None:
        return arguments
    if prompt_tokens is not None and ask.prompt > prompt_tokens:
        has = f"the prompt has about {ask.prompt} tokens"
        raise _too_many(tenant, PROMPT_TOKENS, "input", has, ask.prompt, prompt_tokens)
    if output_tokens is None or not generates(method):
        return arguments
    if ask.most is None:
        named: dict[str, Any] = dict(_named.decode(arguments))
        named[MAX_TOKENS] = output_tokens
        return _encode(named)
    if ask.most > output_tokens:
        asked = f"{ask.most} tokens are asked for"
        raise _too_many(tenant, "output_tokens", f"input.{MAX_TOKENS}", asked, ask.most, output_tokens)
    return arguments


def _too_many(tenant: str, limit: str, field: str, asked: str, current: int, allowed: int) -> BadInput:
    return BadInput(
        f"{field}: {asked}, and the limit {limit} of {tenant} allows {allowed}.",
        code=TOO_MANY,
        field=field,
        limits=(ReachedLimit(limit=limit, tenant=tenant, allowed=allowed, current=current),),
    )


def _parameters(schema: dict[str, Any]) -> dict[str, Any]:
    known = schema.get("properties")
    return known if isinstance(known, dict) else {}


def _prompt_of(named: dict[str, msgspec.Raw]) -> int:
    if (ids := named.get(PROMPT_IDS)) is not None and (length := _length(ids)) is not None:
        return length
    return sum(_by_bytes(named.get(text)) for text in TEXTS)


def _by_bytes(value: msgspec.Raw | None) -> int:
    size = len(memoryview(value)) if value is not None else 0
    return -(-size // BYTES_PER_TOKEN) if size > 1 else 0  # one byte: null, or nothing


def _length(ids: msgspec.Raw) -> int | None:
    """The length of a list, without a look at what is in it; None: it is none."""
    data = memoryview(ids)
    first = data[0]
    if first & 0xF0 == 0x90:
        return first & 0x0F
    width = SHORT_HEADS.get(first, 0)
    return int.from_bytes(data[1 : 1 + width], "big") if width else None


def _whole_number(value: msgspec.Raw | None) -> int | None:
    found: object = _any.decode(value) if value is not None and len(memoryview(value)) < 10 else None
    # Less than nothing would give tokens back.
    return max(0, found) if isinstance(found, int) and not isinstance(found, bool) else None
