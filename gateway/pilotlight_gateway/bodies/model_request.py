"""What a request to a model comes to, and how it travels from a worker."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

RawFields = Mapping[str, msgspec.Raw]
"""Field -> its JSON."""


USER_BYTES = 1_024
"""Of a user's name in JSON."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a request asks for."""

    model: str
    stream: bool = False
    include_usage: bool = False
    usage_so_far: bool = False
    """Whether each chunk of a stream tells the tokens up to it."""
    fields: RawFields
    """Of the generation document; of embeddings the texts, as `input`."""
    ignored: tuple[str, ...] = ()
    """Fields of the request that nothing goes by."""
    kept: RawFields = {}
    """Fields that the answer repeats."""
    count: int = 0
    """Texts, of embeddings."""
    as_base64: bool = False
    user: str = ""
    """The end user whom it names; "": none, or by a name that is too long."""


def user_of(known: RawFields) -> str:
    """The end user whom the fields of a request name, as rollouts go by it."""
    named = known.get("user")
    if named is None or memoryview(named).nbytes > USER_BYTES:
        return ""
    try:
        return msgspec.json.decode(named, type=str)
    except msgspec.DecodeError:
        return ""  # nothing else goes by it, so a request is not refused for it


class ModelRequestHead(msgspec.Struct, frozen=True, kw_only=True):
    """A request without its values, which follow one after the other."""

    model: str
    stream: bool
    include_usage: bool
    usage_so_far: bool
    fields: tuple[tuple[str, int], ...]
    """Names, and the bytes of their values."""
    ignored: tuple[str, ...]
    kept: tuple[tuple[str, int], ...]
    count: int
    as_base64: bool
    user: str = ""


def sent(request: ModelRequest) -> tuple[ModelRequestHead, bytes]:
    """A request for another process: what it is, and its values."""
    values = [*request.fields.values(), *request.kept.values()]
    return ModelRequestHead(
        model=request.model, stream=request.stream, include_usage=request.include_usage,
        usage_so_far=request.usage_so_far, fields=_sizes(request.fields),
        ignored=request.ignored, kept=_sizes(request.kept), count=request.count,
        as_base64=request.as_base64, user=request.user,
    ), b"".join(bytes(memoryview(value)) for value in values)  # fmt: skip


def received(request: ModelRequestHead, values: bytes) -> ModelRequest:
    """A request that another process has sent."""
    view, at = memoryview(values), 0
    found: list[dict[str, msgspec.Raw]] = []
    for sizes in (request.fields, request.kept):
        named: dict[str, msgspec.Raw] = {}
        for name, size in sizes:
            named[name] = msgspec.Raw(bytes(view[at : at + size]))
            at += size
        found.append(named)
    return ModelRequest(
        model=request.model, stream=request.stream, include_usage=request.include_usage,
        usage_so_far=request.usage_so_far, fields=found[0],
        ignored=request.ignored, kept=found[1], count=request.count, as_base64=request.as_base64,
        user=request.user,
    )  # fmt: skip


def _sizes(fields: RawFields) -> tuple[tuple[str, int], ...]:
    return tuple((name, memoryview(value).nbytes) for name, value in fields.items())
