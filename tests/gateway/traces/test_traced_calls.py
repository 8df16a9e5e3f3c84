"""The parts of a gateway's traces."""

from __future__ import annotations

from pilotlight_core.bus import Bus
from pilotlight_core.model.messages.scheduling import AskKept
from pilotlight_gateway.traces.traced_calls import lone_traces, trace_calls
from tests.builders.kept import kept_call


async def test_a_gateway_finds_what_it_keeps(bus: Bus) -> None:
    """One of several, and one alone."""
    for parts in (trace_calls(bus, tuple, 0.5, region="local", gateway="g1"), lone_traces()):
        async with parts.running():
            parts.keeper.calls.add(kept_call())
            assert await parts.find(AskKept(tenant="acme")) == ([kept_call()], [])
