"""The last decisions, by container and by function."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from pilotlight_placement.search.decision_record import NoFit, Placement

MOST = 5_000
"""Containers, and functions, whose decisions are kept: a record is some KiB."""
PER_FUNCTION = 3
"""For calls, and as many for trials: trials must not displace the decisions about calls."""


@dataclass(frozen=True, kw_only=True)
class PlacementDecision:
    """A decision, its subject, and its time (seconds of the controller's clock)."""

    outcome: Placement | NoFit
    container: str = ""
    version: str = ""
    """`app.function@v7`."""
    at: float = 0.0
    since: float = 0.0
    """When it was made for the first time: a refusal is repeated while the version waits."""

    @property
    def function(self) -> str:
        return self.outcome.record.ask.function

    @property
    def is_trial(self) -> bool:
        """Whether its container only measures one kind of slice."""
        return bool(self.outcome.record.ask.slice)


class DecisionLog:
    """Bounded: the oldest decisions are dropped first."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._by_container: OrderedDict[str, PlacementDecision] = OrderedDict()
        self._by_function: OrderedDict[str, list[PlacementDecision]] = OrderedDict()

    def add(self, outcome: Placement | NoFit, container: str = "", *, version: str = "", at: float = 0.0) -> None:
        """Record a decision; one without a place has no container."""
        decided = PlacementDecision(outcome=outcome, container=container, version=version, at=at, since=at)
        last = self._by_function.setdefault(decided.function, [])
        if isinstance(outcome, Placement):
            self._by_container[container] = decided
            if len(self._by_container) > self._most:
                self._by_container.popitem(last=False)
        elif (before := _waiting(last, version)) is not None:
            # It still waits: earlier decisions are worth more than each repetition.
            last.remove(before)
            decided = PlacementDecision(outcome=outcome, version=version, at=at, since=before.since)
        last.append(decided)
        alike = [each for each in last if each.is_trial is decided.is_trial]
        last[:] = [each for each in last if each is not alike[0]] if len(alike) > PER_FUNCTION else last
        self._by_function.move_to_end(decided.function)
        if len(self._by_function) > self._most:
            self._by_function.popitem(last=False)

    def latest(self) -> PlacementDecision | None:
        if not self._by_function:
            return None
        return self._by_function[next(reversed(self._by_function))][-1]

    def of_container(self, container: str) -> PlacementDecision | None:
        return self._by_container.get(container)

    def of_function(self, function: str) -> list[PlacementDecision]:
        """The last decisions about a function's containers, oldest first."""
        return list(self._by_function.get(function, ()))


def _waiting(decisions: list[PlacementDecision], version: str) -> PlacementDecision | None:
    last = next((each for each in reversed(decisions) if each.version == version), None)
    return last if last is not None and isinstance(last.outcome, NoFit) else None
