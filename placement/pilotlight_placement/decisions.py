"""The last decisions, by container and by function, for whoever asks why."""

from __future__ import annotations

from collections import OrderedDict

from pilotlight_placement.record import NoFit, Placement

MOST = 5_000
"""Containers, and functions, whose decisions are remembered: a record is some KiB."""
PER_FUNCTION = 3


class Decisions:
    """Bounded: the oldest go first."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._by_container: OrderedDict[str, Placement] = OrderedDict()
        self._by_function: OrderedDict[str, list[tuple[str, Placement | NoFit]]] = OrderedDict()

    def add(self, outcome: Placement | NoFit, container: str = "") -> None:
        """Remember a decision; one without a place has no container."""
        if isinstance(outcome, Placement):
            self._by_container[container] = outcome
            if len(self._by_container) > self._most:
                self._by_container.popitem(last=False)
        function = outcome.record.ask.function
        last = self._by_function.setdefault(function, [])
        if last and isinstance(outcome, NoFit) and isinstance(last[-1][1], NoFit):
            last.pop()  # it waits still: what was decided before it began to wait is worth more than each try
        last.append((container, outcome))
        del last[:-PER_FUNCTION]
        self._by_function.move_to_end(function)
        if len(self._by_function) > self._most:
            self._by_function.popitem(last=False)

    def latest(self) -> tuple[str, Placement | NoFit] | None:
        """The last decision of all; None if there was none."""
        if not self._by_function:
            return None
        return self._by_function[next(reversed(self._by_function))][-1]

    def of_container(self, container: str) -> Placement | None:
        """Why a container is where it is; None if that is forgotten."""
        return self._by_container.get(container)

    def of_function(self, function: str) -> list[tuple[str, Placement | NoFit]]:
        """The last decisions about a function's containers, oldest first."""
        return list(self._by_function.get(function, ()))
