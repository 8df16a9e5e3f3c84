"""What the controller decides and sees, as events for people."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

import structlog
from cachetools import LRUCache

from pilotlight_autoscaler.observations.wish_log import WishChange
from pilotlight_core.host.events.event_log import EventLog
from pilotlight_core.model.messages.logs import SENTENCE_LENGTH, EventKind, PlatformEvent

FUNCTIONS = 10_000
"""Of which it is known; of another one the same number is told once more."""

log = structlog.get_logger()


class DecisionEvents:
    """Tells them while its controller leads: others see the same, and say nothing."""

    def __init__(self, events: EventLog, leads: Callable[[], bool], wall: Callable[[], float] = time.time) -> None:
        self._events = events
        self._leads = leads
        self._wall = wall
        self._counts: LRUCache[str, int] = LRUCache(FUNCTIONS)
        """How many containers functions should have, as was told last."""

    def scaled(self, function: str, change: WishChange) -> None:
        """A function is to have so many containers; for another reason than before is no event."""
        if self._leads() and self._counts.get(function) != change.wish.count:
            self._counts[function] = change.wish.count
            self._events.note(scaled_event(function, change))

    def decided(self, notes: Iterable[str]) -> None:
        """What a pass decided, in words."""
        for note in notes:
            log.info("decided", what=note)
            self._events.note(
                PlatformEvent(at=self._wall(), kind=EventKind.DECIDED, says=note[:SENTENCE_LENGTH], facts={})
            )

    def lost(self, nodes: list[str]) -> int:
        """Nodes that fell silent, which are told and taken out; returns how many."""
        count = len(nodes)
        for node in nodes:
            self._events.note(lost_event(node, self._wall()))
        nodes.clear()
        return count

    def note_money(self, tenant: str, spent: Collection[str], free: Collection[str]) -> None:
        """Budgets of a tenant of which nothing is left, and those of which something is again."""
        if self._leads():
            for budget in sorted(spent):
                self._events.note(budget_event(tenant, budget, self._wall(), is_spent=True))
            for budget in sorted(free):
                self._events.note(budget_event(tenant, budget, self._wall(), is_spent=False))


def scaled_event(function: str, change: WishChange) -> PlatformEvent:
    """Another number of containers is wanted, and why."""
    wish = change.wish
    says = f"{function.partition(':')[2]} should have {_containers(wish.count)}, and has {change.there}: {wish.because}"
    return PlatformEvent(
        at=change.at, kind=EventKind.SCALED, tenant=function.partition(":")[0], function=function,
        says=says[:SENTENCE_LENGTH], facts={"wanted": wish.count, "there": change.there, "rule": str(wish.rule)},
    )  # fmt: skip


def lost_event(node: str, at: float) -> PlatformEvent:
    """A node fell silent without an end of it being planned."""
    says = f"Node {node} fell silent, and nobody had planned it: what ran there is lost or goes on elsewhere."
    return PlatformEvent(at=at, kind=EventKind.NODE_LOST, says=says, operator={"node": node})


def budget_event(tenant: str, budget: str, at: float, *, is_spent: bool) -> PlatformEvent:
    """Nothing is left of a budget, or something is again."""
    if is_spent:
        kind, says = EventKind.BUDGET_SPENT, f"Budget {budget} is used up: what it holds is refused until it has more."
    else:
        kind, says = EventKind.BUDGET_FREE, f"Budget {budget} has something left again."
    return PlatformEvent(at=at, kind=kind, tenant=tenant, says=says, facts={"budget": budget})


def _containers(count: int) -> str:
    return "1 container" if count == 1 else f"{count} containers"
