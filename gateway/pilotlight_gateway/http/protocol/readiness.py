"""Whether this gateway would take calls now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.tenancy.registry_port import RegistryPort


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """The conditions for taking calls."""

    gate: DrainGate
    bus_connected: Callable[[], bool]
    registry: RegistryPort
    calls: CallPort
    clock: Callable[[], float]
    """Monotonic seconds."""

    def why_not(self) -> str:
        """The first condition that does not hold; "": all hold."""
        checks = (
            (not self.gate.leaving, "shutting down"),
            (self.bus_connected(), "the bus is not connected"),
            (self.registry.fresh(self.clock()), "the registry is not up to date"),
        )
        return next((reason for ok, reason in checks if not ok), "") or self.calls.ready()
