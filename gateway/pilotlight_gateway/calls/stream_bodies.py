"""What the last event of a stream carries, as a struct: `call_responses` is compiled."""

from __future__ import annotations

from pilotlight_core.model.api.call_api import CallResponse


class TypedResponse(CallResponse, frozen=True, kw_only=True):
    """The last event of a stream with values in msgpack: `output` is null."""

    output_b64: str | None = None
