"""A call that ended well and is kept since it was sampled: where all are, this is nearly all there is to keep.

Its record is as small as it can be: what it has in common with others stands once for all of them, a `SampledKind`, and
of the call itself there are its id and its times, as bytes (`packed_calls`). It has a trace of its own, one attempt,
and waited for no start of which steps are known; all others are whole `KeptCall`s, which this one becomes where
somebody asks.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import Count, Duration, Rising, ShortText
from pilotlight_core.model.tracing.kept_call import WELL, BatchMates, KeptAttempt, KeptCall, KeptWhy
from pilotlight_core.model.tracing.trace_context import own_trace_id

MOST_OF_KIND = 256
"""In one message."""
MOST_OF_SHEET, SHEET_BYTES = 128, 2**20


class SampledKind(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What sampled calls have in common. Fields as those of `KeptCall` and `KeptAttempt`."""

    tenant: ShortText
    function: ShortText = ""
    ref: ShortText = ""
    version: ShortText = ""
    method: ShortText = ""
    priority: ShortText = ""
    threshold: ShortText = ""
    slow_ms: Duration = 0.0
    container: ShortText = ""
    node: ShortText = ""
    batch_size: Count = 0
    stream: bool = False


class SampledTimes(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One call, as it is read: its id, and how long it was where, in milliseconds."""

    id: ShortText
    arrived_ns: Rising
    total_ms: Duration
    gateway: Duration
    queue: Duration
    start: Duration
    transport: Duration
    batch_wait: Duration
    execute: Duration
    ahead: Count = 0
    """How many calls waited at the home when it came there."""
    mates: BatchMates = ()
    """The other calls of its batch, as `KeptAttempt.mates`."""


class SampledRecord(msgspec.Struct, frozen=True, gc=False):
    """One call with all that is known of it."""

    kind: SampledKind
    times: SampledTimes

    @property
    def id(self) -> str:
        return self.times.id

    @property
    def tenant(self) -> str:
        return self.kind.tenant

    @property
    def function(self) -> str:
        return self.kind.function

    @property
    def kept(self) -> KeptWhy:
        return KeptWhy.SAMPLED

    def whole(self, gateway: str) -> KeptCall:
        """All that is known of it; `gateway`: where its caller was."""
        kind, times = self.kind, self.times
        waited = times.queue + times.start + times.transport + times.batch_wait + times.execute
        stages = {
            "gateway": times.gateway,
            "queue": times.queue,
            "start": times.start,
            "transport": times.transport,
            "batch_wait": times.batch_wait,
            "execute": times.execute,
            "respond": max(0.0, times.total_ms - times.gateway - waited),
        }
        attempt = KeptAttempt(
            container=kind.container,
            node=kind.node,
            outcome=WELL,
            ahead=times.ahead,
            mates=times.mates,
            queue=times.queue,
            start=times.start,
            transport=times.transport,
            batch_wait=times.batch_wait,
            execute=times.execute,
        )
        return KeptCall(
            id=times.id,
            trace_id=own_trace_id(times.id),
            threshold=kind.threshold,
            tenant=kind.tenant,
            function=kind.function,
            ref=kind.ref,
            version=kind.version,
            method=kind.method,
            priority=kind.priority,
            kept=KeptWhy.SAMPLED,
            arrived_ns=times.arrived_ns,
            total_ms=times.total_ms,
            slow_ms=kind.slow_ms,
            stages=stages,
            attempts=(attempt,),
            batch_size=kind.batch_size,
            stream=kind.stream,
            gateway=gateway,
        )


class SampledSheet(msgspec.Struct, frozen=True):
    """Sampled calls of one tenant, in a message."""

    kinds: Annotated[tuple[SampledKind, ...], Meta(max_length=MOST_OF_SHEET)]
    count: Annotated[int, Meta(ge=0, le=MOST_OF_KIND)]
    records: Annotated[bytes, Meta(max_length=SHEET_BYTES)]
    """As `packed_calls` writes them, the oldest first."""


class SampledGroup(msgspec.Struct, frozen=True):
    """Sampled calls of one kind, as gateways of earlier releases send them."""

    kind: SampledKind
    calls: Annotated[tuple[SampledTimes, ...], Meta(max_length=MOST_OF_KIND)]
