"""What a gateway needs of traces: which calls are sampled, what is kept, and where that of all gateways is found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from pilotlight_core.bus import Bus
from pilotlight_core.model.messages.scheduling import AskKept
from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_core.model.tracing.trace_sampling import UNSAMPLED, TraceSampler
from pilotlight_gateway.traces.trace_exchange import TraceExchange, kept_of
from pilotlight_gateway.traces.trace_keeper import TraceKeeper

FindKept = Callable[[AskKept], Awaitable[tuple[list[KeptCall], list[str]]]]
"""Kept calls of all gateways, the newest first, and the gateways that did not answer."""


@dataclass(frozen=True, kw_only=True)
class TracedCalls:
    """The parts of a gateway's traces."""

    sampler: TraceSampler
    keeper: TraceKeeper
    find: FindKept
    running: Callable[[], AbstractAsyncContextManager[None]]
    """Sends what is kept, and tells other gateways of it, until the block ends."""


def trace_calls(
    bus: Bus, others: Callable[[], Iterable[str]], ratio: float, *, region: str, gateway: str
) -> TracedCalls:
    """Those of `gateway`, one of several, which samples this part of all calls."""
    sampler = TraceSampler(ratio)
    keeper = TraceKeeper(sampler, gateway=gateway)
    exchange = TraceExchange(bus, keeper, others, region=region, gateway=gateway)
    return TracedCalls(sampler=sampler, keeper=keeper, find=exchange.find, running=exchange.running)


def lone_traces() -> TracedCalls:
    """Those of a gateway without a bus, which samples nothing."""
    keeper = TraceKeeper(UNSAMPLED)

    async def find(asked: AskKept) -> tuple[list[KeptCall], list[str]]:
        return kept_of(keeper, asked), []

    return TracedCalls(sampler=UNSAMPLED, keeper=keeper, find=find, running=nullcontext)
