"""Calls of generators with one answer: the list of their chunks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import msgspec

from pilotlight_core.model.errors import BadOutput, PilotlightError
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallPort, CallResult, ChunkEvent
from pilotlight_gateway.calls.call_responses import list_of
from pilotlight_gateway.calls.prepared_call import PreparedCall

ANSWER_BYTES = 10 * 10**6 + 64 * 1024
"""Of all chunks together: 10 MB of payload and its framing."""


async def collect_chunks(
    calls: CallPort,
    call: PreparedCall,
    codec: BodyCodec,
    budget: ByteBudget,
    note_chunk: Callable[[], None] | None = None,
) -> CallResult:
    """Run a generator to its end; the result's output is the list. `note_chunk` is told of each chunk as it comes.

    Raises:
        BadOutput: a chunk violates the schema, or the chunks are too large together.
        PilotlightError: the error of the call.
    """
    chunks: list[bytes] = []
    held = 0
    events: Any = calls.stream(call)
    try:
        async with aclosing(events):
            async for bunch in events:
                for event in bunch:
                    if isinstance(event, CallResult):
                        return msgspec.structs.replace(event, output=list_of(chunks))
                    if isinstance(event, ChunkEvent):
                        if note_chunk is not None:
                            note_chunk()
                        await codec.check_output(event.data, call.version.id, call.method, call.tenant)
                        budget.take(len(event.data), call.tenant)
                        chunks.append(event.data)
                        held += len(event.data)
                        if held > ANSWER_BYTES:
                            raise BadOutput("All chunks together are more than 10 MB: accept text/event-stream.")
        raise PilotlightError("The stream of the call ended without a result.")
    finally:
        budget.give_back(held, call.tenant)
