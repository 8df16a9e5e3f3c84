"""What the events of a stream carry, as structs."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.api.call_api import CallResponse


class TypedResponse(CallResponse, frozen=True, kw_only=True):
    """The last event of a stream with values in msgpack: `output` is null."""

    output_b64: str | None = None


class ChunkBody(msgspec.Struct, frozen=True):
    """The data of a chunk event."""

    seq: int
    value: msgspec.Raw


class TypedChunkBody(msgspec.Struct, frozen=True):
    """The data of a chunk event with its value in msgpack."""

    seq: int
    value_b64: str
