"""Slowdown: how much longer the calls of a flow take than if their tenant were alone.

    slowdown = time in the system / the same alone

Alone, a flow would still wait for starts and for its own calls. A clock per flow simulates `slots` slots without other
tenants: a call that came at `since` and held its slot for `hold_s` would have begun at `max(since, clock)`, and moves
the clock on by `hold_s / slots`. So a tenant that floods has a slowdown of 1. Means are over about the last twenty
calls.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from pilotlight_core.model.messages.call_messages import CallDescriptor

FLOWS = 1024
"""Flows of a version that are followed; beyond it the one that is idle for longest is forgotten."""
KEPT = 0.95
"""Factor by which each call reduces the weight of earlier ones."""
ALERT = 5.0
"""A flow is slow if its calls take this many times as long as alone."""
ENOUGH = 20
"""Calls after which a slowdown is significant."""


@dataclass(frozen=True, kw_only=True)
class SlowFlow:
    """A flow that others slow down; `neighbour` is the tenant that holds most of the slots."""

    version: str
    function: str
    tenant: str
    priority: str
    slowdown: float
    calls: int
    neighbour: str
    held_part: float = 0.0
    """Of the time in slots lately, that of its own calls."""
    neighbour_part: float = 0.0
    mean_ms: float = 0.0
    """How long its calls take, on average over the last ones."""


class _Flow:
    __slots__ = ("alone_ms", "calls", "clock", "held_ms", "system_ms")

    def __init__(self) -> None:
        self.calls = 0
        self.system_ms = 0.0
        self.alone_ms = 0.0
        self.clock = float("-inf")
        """When its next call would begin if the tenant were alone."""
        self.held_ms = 0.0
        """Slot time, halved at each sweep."""

    @property
    def mean_ms(self) -> float:
        """On average over the last calls, in the system."""
        return self.system_ms * (1.0 - KEPT) / (1.0 - KEPT**self.calls) if self.calls else 0.0

    @property
    def slowdown(self) -> float:
        return max(1.0, self.system_ms / self.alone_ms) if self.alone_ms > 0 else 1.0


class Slowdowns:
    def __init__(self) -> None:
        # No cache of cachetools, which takes four times as long (0.45 µs) for each call.
        self._flows: OrderedDict[tuple[str, str], _Flow] = OrderedDict()

    def ended(self, call: CallDescriptor, since: float, start_ms: float, hold_s: float, slots: int, at: float) -> None:
        """A call has ended that came at `since` and held its slot for `hold_s`.

        No container was ready for the first `start_ms`.
        """
        key = (call.tenant, call.priority)
        flow = self._flows.get(key)
        if flow is None:
            flow = self._flows[key] = _Flow()
            if len(self._flows) > FLOWS:
                self._flows.popitem(last=False)
        else:
            self._flows.move_to_end(key)
        ready = since + start_ms / 1000.0
        begun = ready if ready > flow.clock else flow.clock
        flow.clock = begun + hold_s / (slots or 1)
        flow.calls += 1
        flow.system_ms = KEPT * flow.system_ms + (at - since) * 1000.0
        flow.alone_ms = KEPT * flow.alone_ms + (begun - since + hold_s) * 1000.0
        flow.held_ms += hold_s * 1000.0

    def of(self, tenant: str, priority: str) -> float:
        """The slowdown of a flow; 1 if unknown."""
        flow = self._flows.get((tenant, priority))
        return flow.slowdown if flow is not None else 1.0

    def worst(self) -> dict[str, float]:
        """The largest slowdown of each class, of flows with enough calls."""
        found: dict[str, float] = {}
        for (_, priority), flow in self._flows.items():
            if flow.calls >= ENOUGH:
                found[priority] = max(found.get(priority, 1.0), flow.slowdown)
        return found

    def slow(self, version: str, function: str, least: float = ALERT) -> list[SlowFlow]:
        """The flows whose slowdown is now at least so much, the slowest first."""
        held: dict[str, float] = {}
        for (tenant, _), flow in self._flows.items():
            held[tenant] = held.get(tenant, 0.0) + flow.held_ms
        total = sum(held.values()) or 1.0
        found = []
        for (tenant, priority), flow in self._flows.items():
            if flow.calls >= ENOUGH and flow.slowdown >= least:
                neighbour = _most_held(held, tenant)
                found.append(
                    SlowFlow(
                        version=version,
                        function=function,
                        tenant=tenant,
                        priority=priority,
                        slowdown=flow.slowdown,
                        calls=flow.calls,
                        neighbour=neighbour,
                        held_part=held[tenant] / total,
                        neighbour_part=held.get(neighbour, 0.0) / total,
                        mean_ms=flow.mean_ms,
                    )
                )
        return sorted(found, key=lambda flow: -flow.slowdown)

    def age(self) -> None:
        """Halve the slot times."""
        for flow in self._flows.values():
            flow.held_ms /= 2.0


def _most_held(held: dict[str, float], tenant: str) -> str:
    """Who holds most of the slots but a tenant; "": nobody else does."""
    others = [other for other in held if other != tenant]
    return max(others, key=lambda other: held[other], default="")
