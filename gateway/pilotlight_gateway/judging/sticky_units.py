"""Sticky units, such as tenants: all calls of one are on one side, so there is one bet for each, not one per call.

A unit is bet on when it has made `UNIT_CALLS` calls on its side. Its score is the mean of its calls' scores, less that
of its own calls before, over three times by how much units differ. `rho` is that of its first call: where it changes
before the bet (only without a twin), what was counted is dropped on both sides, and units that stayed begin again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from pilotlight_gateway.judging.guards.wealth import clipped
from pilotlight_gateway.judging.usual.robust import mad_of

UNIT_CALLS = 20
MOST_UNITS = 4_000
"""Further ones are not judged."""
HISTORY = 5
"""Calls of before that say what is usual for a unit."""
LEAST_UNITS = 20
"""Of the old version, that say how far units differ."""
MOST_MEANS = 100
FIRST_SPREAD = 1.5
"""Until then, in standard deviations of a mean of calls: users differ by more than chance."""
LEAST_SPREAD = 0.02
EVENTS = frozenset({"errors", "slow", "dear"})
"""Guards on events, whose scores are parts of a unit's calls."""


class StickyUnit(msgspec.Struct, array_like=True):
    """What is known of one."""

    side: int = -1
    """1: the canary; 0: the old version, compared; -1: it was not compared yet."""
    rho: float = 0.0
    """With which its first counted call was sent."""
    chance: float = 0.0
    """Of the canary, of those that stayed with the old version at a lower share; 0: it is `rho`."""
    is_done: bool = False
    calls: int = 0
    sums: dict[str, float] = {}
    """Of scores, by guard."""
    counts: dict[str, int] = {}
    history: dict[str, list[float]] = {}
    """Sum and number of scores before it was compared."""
    is_split: bool = False
    """Whether it is known to have been drawn, be it by a call whose times say nothing."""


class UnitBet(NamedTuple):
    """A bet on one guard."""

    guard: str
    canary: bool
    rho: float
    score: float
    residual: float
    """The unit's mean, before it was scaled."""


class StickyUnits(msgspec.Struct):
    """Those of one function."""

    units: dict[str, StickyUnit] = {}
    most: int = MOST_UNITS
    """Units that are judged: functions of one rollout share what there is room for."""
    means: dict[str, list[float]] = {}
    """By guard, of units of the old version that were bet on."""

    def is_first(self, unit: str) -> bool:
        """Whether this is the first compared call of a unit; of further ones than are judged none is."""
        found = self._of(unit)
        if found is None or found.is_split:
            return False
        found.is_split = True
        return True

    def note_history(self, unit: str, scores: dict[str, float]) -> None:
        """A call of the old version that is not compared."""
        found = self._of(unit)
        if found is not None and found.side < 0:
            for guard, score in scores.items():
                held = found.history.setdefault(guard, [0.0, 0.0])
                held[0] += score
                held[1] += 1.0

    def note(
        self, unit: str, *, canary: bool, rho: float, scores: dict[str, float], counts: bool = True
    ) -> list[UnitBet]:
        """A compared call of a unit; the bets that follow from it. `counts`: it is not one of which something was told
        before.
        """
        found = self._of(unit)
        if found is None or found.is_done or not self._is_sided(found, canary=canary, rho=rho):
            return []
        found.calls += counts
        for guard, score in scores.items():
            found.sums[guard] = found.sums.get(guard, 0.0) + score
            found.counts[guard] = found.counts.get(guard, 0) + 1
        if found.calls < UNIT_CALLS:
            return []
        found.is_done = True
        bets = [self._bet(found, guard) for guard in found.sums]
        found.sums, found.counts, found.history = {}, {}, {}
        return bets

    def _of(self, unit: str) -> StickyUnit | None:
        found = self.units.get(unit)
        if found is None and len(self.units) < self.most:
            found = self.units[unit] = StickyUnit()
        return found

    def _is_sided(self, unit: StickyUnit, *, canary: bool, rho: float) -> bool:
        """Whether a call counts for its unit. See the head of the file."""
        if unit.side < 0:
            unit.side, unit.rho = int(canary), rho
        elif unit.rho != rho:
            if unit.side == 1:
                unit.is_done = True
                return False
            # It stayed with the old version at the lower share: what it is now was drawn among those alone.
            chance = (rho - unit.rho) / (1.0 - unit.rho) if rho > unit.rho else 0.0
            unit.side, unit.rho, unit.calls, unit.sums, unit.counts = int(canary), rho, 0, {}, {}
            unit.is_done = not 0.0 < chance < 1.0
            unit.chance = chance
            return not unit.is_done
        elif unit.side != int(canary):
            unit.is_done = True  # it cannot be: it was sent by another salt
            return False
        return True

    def _bet(self, unit: StickyUnit, guard: str) -> UnitBet:
        mean = unit.sums[guard] / unit.counts[guard]
        before = unit.history.get(guard)
        if before is not None and before[1] >= HISTORY:
            mean -= before[0] / before[1]
        spread = self._spread(guard)
        if unit.side == 0:
            means = self.means.setdefault(guard, [])
            if len(means) < MOST_MEANS:
                means.append(mean)
        return UnitBet(guard, unit.side == 1, unit.chance or unit.rho, clipped(mean / spread), mean)

    def _spread(self, guard: str) -> float:
        """Three times how far means of units differ."""
        means = self.means.get(guard, [])
        if len(means) >= LEAST_UNITS:
            return 3.0 * max(mad_of(means), LEAST_SPREAD)
        if guard in EVENTS:
            return 0.5
        return 3.0 * FIRST_SPREAD / 3.0 / math.sqrt(UNIT_CALLS)
