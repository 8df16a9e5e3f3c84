"""Embeddings that a function has returned, as the answer of OpenAI's route."""

from __future__ import annotations

import base64
import math
import sys
from array import array
from typing import Any

import msgspec

from pilotlight_core.model.errors import BadInput, BadOutput
from pilotlight_core.model.values import ValueRoom, check_count, decode_opaque, to_json

EXPECTED = "expected a list of vectors of numbers, or {'embeddings': such a list, 'prompt_tokens': a number}"
NUMBERS = (int, float)


def embeddings_json(
    output: bytes, *, model: str, count: int, as_base64: bool, prompt_tokens: int | None, most: int | None, arrays: int
) -> bytes:
    """The answer for `count` inputs, as JSON; -1: nobody knows how many there were.

    Args:
        prompt_tokens: what the call counted; None: the function's answer says it, or nobody.
        most: values that are read; None: as many as there are.
        arrays: values that arrays may become.

    Raises:
        BadOutput: it is not as many vectors.
        TooManyValues.
    """
    try:
        value = decode_opaque(output)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise BadOutput(f"The function's answer cannot be read: {error}.") from None
    if most is not None:
        check_count(most, value)
    if isinstance(value, dict):
        told = value.get("prompt_tokens")
        if prompt_tokens is None and type(told) is int and told >= 0:
            prompt_tokens = told
        value = value.get("embeddings")
    try:
        vectors = to_json(value, ValueRoom(arrays))
    except BadInput as error:
        raise BadOutput(f"The function's answer cannot be read: {error.detail}") from None
    if not isinstance(vectors, list):
        raise BadOutput(f"The function's answer is no list: {EXPECTED}.")
    if count >= 0 and len(vectors) != count:
        raise BadOutput(f"The function's answer has {len(vectors)} vectors for {count} inputs.")
    tokens = prompt_tokens or 0
    document = {
        "object": "list",
        "data": [
            {"object": "embedding", "index": number, "embedding": _written(vector, as_base64=as_base64)}
            for number, vector in enumerate(vectors)
        ],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return msgspec.json.encode(document)


def _written(vector: Any, *, as_base64: bool) -> Any:
    if not isinstance(vector, list) or not all(type(number) in NUMBERS for number in vector):
        raise BadOutput(f"The function's answer has something else than vectors of finite numbers: {EXPECTED}.")
    if not as_base64:
        return vector
    try:
        floats = array("f", vector)
    except OverflowError:
        raise BadOutput("The function's answer has numbers that float32 does not have.") from None
    if sys.byteorder == "big":
        floats.byteswap()
    if not all(map(math.isfinite, floats)):
        raise BadOutput("The function's answer has numbers that float32 does not have.")
    return base64.b64encode(floats.tobytes()).decode()
