"""Whether a function breaks a level of its `slo=`: the error budget burns too fast over a long window and a short one.

The pairs of windows, and the part of calls that is to be in time, are those of the alerts for operators
(`infra/prometheus/service_levels.yaml`). Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from pilotlight_core.model.messages.seeing.tallies import FunctionTally
from pilotlight_core.model.spec import SLO

OBJECTIVE = 0.95
"""Of calls that have a level, the part that is to keep it."""
FIELDS = {"unary": "p95_ms", "first_chunk": "ttft_ms", "gap": "itl_ms"}
"""Levels, and what names them in `slo=`."""
LEAST_BAD, LEAST_CALLS = 5, 10
NS_PER_MINUTE = 60_000_000_000


class BurnPair(NamedTuple):
    """Windows in minutes, and how many times too fast the budget burns over both."""

    long: int
    short: int
    rate: float
    young: int = 0
    """Minutes of history without which the long window says no more than shorter ones."""

    @property
    def bound(self) -> float:
        """The part of bad calls from which it burns so fast."""
        return self.rate * (1.0 - OBJECTIVE)


PAIRS = (
    BurnPair(60, 5, 14.4),
    BurnPair(360, 30, 6.0),
    BurnPair(1_440, 120, 3.0, 720),
    BurnPair(4_320, 360, 1.0, 1_440),
)


def levels_of(slo: SLO) -> dict[str, float]:
    """The levels that a function names, and their milliseconds."""
    return {level: float(ms) for level, field in FIELDS.items() if (ms := getattr(slo, field)) is not None}


def bad_part(tally: FunctionTally, level: str) -> float:
    """Of the calls that have a level, the part that did not keep it."""
    good, bad = tally.good.get(level, 0), tally.bad.get(level, 0)
    return bad / (good + bad) if good + bad else 0.0


def burns_short(tally: FunctionTally, level: str, pair: BurnPair) -> bool:
    """Whether it goes on: the short window burns."""
    return bad_part(tally, level) > pair.bound


def burns_long(tally: FunctionTally, level: str, pair: BurnPair) -> bool:
    """Whether it matters: the long window burns, of enough calls, and is long enough."""
    calls = tally.good.get(level, 0) + tally.bad.get(level, 0)
    if calls < max(LEAST_CALLS, math.ceil(LEAST_BAD / pair.bound)):
        return False
    seen = (tally.until_ns - tally.since_ns) / NS_PER_MINUTE
    return seen >= pair.young and bad_part(tally, level) > pair.bound


def broken_by(level: str, short: Mapping[int, FunctionTally], long: Mapping[int, FunctionTally]) -> BurnPair | None:
    """The first pair of windows over which a level is broken; None: over none. Tallies by the minutes of their
    windows; those that are missing have no calls.
    """
    for pair in PAIRS:
        if pair.short in short and pair.long in long:
            goes_on, matters = short[pair.short], long[pair.long]
            if burns_short(goes_on, level, pair) and burns_long(matters, level, pair):
                return pair
    return None
