"""The last decisions, by container and by function."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from pilotlight_placement.search.decision_record import NoFit, Placement

MOST = 5_000
"""Containers, and functions, whose decisions are remembered: a record is some KiB."""
PER_FUNCTION = 3
"""For calls, and as many for trials: measuring a function must not hide where its calls run."""


@dataclass(frozen=True, kw_only=True)
class PlacementDecision:
    """A decision, what it was about, and when it was made (seconds of the controller's clock)."""

    outcome: Placement | NoFit
    container: str = ""
    """"" if there was no place."""
    version: str = ""
    """`app.function@v7`."""
    at: float = 0.0
    since: float = 0.0
    """When it was made for the first time: a refusal is repeated for as long as the version waits."""

    @property
    def function(self) -> str:
        return self.outcome.record.ask.function

    @property
    def is_trial(self) -> bool:
        """Whether it was about a container that only measures one kind of slice."""
        return bool(self.outcome.record.ask.slice)


class DecisionLog:
    """Bounded: the oldest go first."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._by_container: OrderedDict[str, PlacementDecision] = OrderedDict()
        self._by_function: OrderedDict[str, list[PlacementDecision]] = OrderedDict()

    def add(self, outcome: Placement | NoFit, container: str = "", *, version: str = "", at: float = 0.0) -> None:
        """Remember a decision; one without a place has no container."""
        decided = PlacementDecision(outcome=outcome, container=container, version=version, at=at, since=at)
        last = self._by_function.setdefault(decided.function, [])
        if isinstance(outcome, Placement):
            self._by_container[container] = decided
            if len(self._by_container) > self._most:
                self._by_container.popitem(last=False)
        elif (before := _waiting(last, version)) is not None:
            # It waits still: what was decided before it began to wait is worth more than each try.
            last.remove(before)
            decided = PlacementDecision(outcome=outcome, version=version, at=at, since=before.since)
        last.append(decided)
        alike = [each for each in last if each.is_trial is decided.is_trial]
        last[:] = [each for each in last if each is not alike[0]] if len(alike) > PER_FUNCTION else last
        self._by_function.move_to_end(decided.function)
        if len(self._by_function) > self._most:
            self._by_function.popitem(last=False)

    def latest(self) -> PlacementDecision | None:
        """The last decision of all; None if there was none."""
        if not self._by_function:
            return None
        return self._by_function[next(reversed(self._by_function))][-1]

    def of_container(self, container: str) -> PlacementDecision | None:
        """Why a container is where it is; None if that is forgotten."""
        return self._by_container.get(container)

    def of_function(self, function: str) -> list[PlacementDecision]:
        """The last decisions about a function's containers, oldest first."""
        return list(self._by_function.get(function, ()))


def _waiting(decisions: list[PlacementDecision], version: str) -> PlacementDecision | None:
    """A version's last decision, if that is a refusal."""
    last = next((each for each in reversed(decisions) if each.version == version), None)
    return last if last is not None and isinstance(last.outcome, NoFit) else None
