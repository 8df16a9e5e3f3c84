"""Which call the code of a function runs for, and the trace that it belongs to."""

from __future__ import annotations

import msgspec

from pilotlight.definitions.errors import Misuse
from pilotlight_core.model.messages.running_code import (
    IN_BATCH,
    IN_HOOK,
    RUNNING_CALL,
    RUNNING_ITEMS,
    RUNNING_TRACE,
)
from pilotlight_core.model.tracing.trace_context import context_within

BATCH = "pilotlight.current_call(): a batched function runs several calls as one: current_calls() has each of them."


class CurrentCall(msgspec.Struct, frozen=True):
    """The call that runs here."""

    id: str
    """"": none does."""
    traceparent: str
    """W3C's Trace Context below which the function's own spans belong; "": no call runs."""
    tracestate: str = ""
    """What vendors on the way to the call know of its trace, to be sent on beside `traceparent`; "": nothing."""


def current_call() -> CurrentCall:
    """Return the call that runs here: its id, and its trace.

    `traceparent` is what OpenTelemetry's propagators read, so that the function's own spans become a part of its
    caller's trace. It is of this call, whichever others the container runs at the same time. Outside a call, also in a
    thread without the call's context, both texts are empty.

    Raises:
        Misuse: in a batched function, which runs several calls: `current_calls` has them.
    """
    call_id = RUNNING_CALL.get()
    if call_id == IN_BATCH:
        raise Misuse(BATCH)
    if call_id in ("", IN_HOOK):
        return CurrentCall(id="", traceparent="")
    return _call_of(call_id, RUNNING_TRACE.get())


def current_calls() -> list[CurrentCall]:
    """Return the calls that run here: of a batched function one for each item, in their order; else one, or none."""
    if RUNNING_CALL.get() == IN_BATCH and (items := RUNNING_ITEMS.get()) is not None:
        return [_call_of(call_id, came) for call_id, came in items.traced_calls()]
    running = current_call()
    return [running] if running.id else []


def _call_of(call_id: str, came: str) -> CurrentCall:
    context = context_within(call_id, came)
    return CurrentCall(id=call_id, traceparent=context.header, tracestate=context.state)
