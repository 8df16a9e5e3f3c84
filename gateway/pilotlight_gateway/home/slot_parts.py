"""Who may take the last free slots of an engine's containers: flows that hold less than their part.

An engine takes a few calls more than it runs, and preempts others for them by its own shares in tokens. Those slots are
spare: whoever fills the rest, a call of somebody who has little there waits for no answer's end. A flow's part is
its weight, the tenant's times the class's, over that of all flows that have calls waiting or running, of the slots that
are not spare. So parts never add up to more than these, whoever comes or goes; a flow beyond its part gives slots back
as its calls end.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_core.model.integrity import require
from pilotlight_gateway.home.tier_queue import Flow


class _Part:
    """One flow that is there."""

    __slots__ = ("held", "waiting", "weight")

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.held = 0
        self.waiting = 0


class SlotParts:
    """The flows of one version that have calls."""

    __slots__ = ("_parts", "_weight")

    def __init__(self) -> None:
        self._parts: dict[tuple[str, float], _Part] = {}
        """By tenant and its class's weight."""
        self._weight = 0.0
        """Of all of them."""

    def wait(self, flow: Flow, more: int) -> None:
        """A flow has a call more that waits, or one less (-1)."""
        part = self._part_of(flow)
        part.waiting += more
        self._leave_if_idle(flow, part)

    def hold(self, flow: Flow, more: int) -> None:
        """A flow holds a slot more, or one less (-1). Slots that it took before anybody counted were none."""
        part = self._part_of(flow)
        part.held = max(0, part.held + more)
        self._leave_if_idle(flow, part)

    def is_within(self, tenant: str, class_weight: float, slots: int) -> bool:
        """Whether a flow holds less than its part of `slots`. Whoever holds none always does."""
        part = self._parts.get((tenant, class_weight))
        return part is None or not part.held or part.held < part.weight / self._weight * slots

    def check_integrity(self, flows: Iterable[Flow]) -> None:
        """Raise if what waits in `flows` is not what is counted."""
        waiting: dict[tuple[str, float], int] = {}
        for flow in flows:
            waiting[_key(flow)] = waiting.get(_key(flow), 0) + flow.live
        require({key: part.waiting for key, part in self._parts.items() if part.waiting} == waiting, "parts miscount")
        weight = sum(part.weight for part in self._parts.values())
        require(abs(self._weight - weight) <= 1e-6 * max(1.0, weight), "parts have another weight")

    def _part_of(self, flow: Flow) -> _Part:
        key, weight = _key(flow), flow.counter.weight * flow.tier_queue.class_queue.weight
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = _Part(weight)
            self._weight += weight
        elif part.weight != weight:
            self._weight += weight - part.weight
            part.weight = weight
        return part

    def _leave_if_idle(self, flow: Flow, part: _Part) -> None:
        if not part.held and not part.waiting:
            del self._parts[_key(flow)]
            self._weight = self._weight - part.weight if self._parts else 0.0


def _key(flow: Flow) -> tuple[str, float]:
    return flow.tenant, flow.tier_queue.class_queue.weight
