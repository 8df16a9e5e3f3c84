"""The requests of nested calls: a function may pass arguments by place to one that it knows by name alone."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.schema_examples import ORDER
from pilotlight_core.model.spec import MethodSpec, VersionRecord

PLACES = "args"
"""Of a request: a list of arguments by place, before those of `input`."""


class _Placed(msgspec.Struct):
    """What of a request says how it is completed."""

    args: list[msgspec.Raw] = []
    input: dict[str, msgspec.Raw] = {}
    method: str | None = None


def named_request(request: bytes, version: VersionRecord) -> bytes:
    """The request with all arguments by name; `version` has its schemas.

    Raises:
        BadInput: it cannot be read, or the arguments do not fit.
    """
    try:
        placed = msgspec.msgpack.decode(request, type=_Placed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"The request cannot be read: {error}.", code="bad_request") from None
    if not placed.args:
        return request
    order = parameters_of(version.spec.method(placed.method))
    names = order[: len(placed.args)]
    if len(names) < len(placed.args) or set(names) & placed.input.keys():
        takes = f"its parameters are ({', '.join(order)})" if order else "pass arguments by name"
        raise BadInput(f"{version.app}.{version.function} cannot be called with these arguments: {takes}.")
    whole: dict[str, Any] = msgspec.msgpack.decode(request, type=dict[str, msgspec.Raw])
    del whole[PLACES]
    whole["input"] = dict(zip(names, placed.args, strict=True)) | placed.input
    return msgspec.msgpack.encode(whole)


def parameters_of(method: MethodSpec) -> list[str]:
    """The names of a method's parameters in order, as the SDK wrote them into its schema; none are known: []."""
    order = method.input_schema.get(ORDER) if isinstance(method.input_schema, dict) else None
    return [str(name) for name in order] if isinstance(order, list) else []
