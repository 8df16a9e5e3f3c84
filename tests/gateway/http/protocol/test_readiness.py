"""Whether calls would be taken: the first thing that is missing is named."""

from __future__ import annotations

from pilotlight_gateway.calls.call_fake import FakeCalls
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.http.protocol.readiness import Readiness
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry


def test_the_first_thing_that_is_missing_is_named() -> None:
    """In the order in which a gateway loses them; nothing is missing in the end."""
    gate, registry, calls, connected = DrainGate(), MemoryRegistry(), FakeCalls(), [False]
    readiness = Readiness(
        gate=gate, bus_connected=lambda: connected[0], registry=registry, calls=calls, clock=lambda: 0.0
    )
    registry.stale, calls.not_ready, gate.leaving = True, "no home lease", True
    reasons = [readiness.why_not()]
    gate.leaving = False
    reasons.append(readiness.why_not())
    connected[0] = True
    reasons.append(readiness.why_not())
    registry.stale = False
    reasons.append(readiness.why_not())
    calls.not_ready = ""

    assert reasons == ["shutting down", "the bus is not connected", "the registry is not up to date", "no home lease"]
    assert readiness.why_not() == ""
