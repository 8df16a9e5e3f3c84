"""How long a function is usually idle, and so when a container of it is worth its keep. Pure.

Idle times are counted in minutes, the recent ones more, one by one up to an hour and in bins of 3 % above. A container
at the age `x` (minutes since the last call) is worth its keep if calls are likely enough about then:

    chance(x)  the part of idle times that end within 10 % of x
    price(x)   the idle minutes that a container spends there on average: the part that last so long, over the window
    warm       where chance(x) / price(x) >= 1 / worth: a cold start saved is worth `worth` idle minutes

This is the optimum of a renewal process whose law is known (each minute is bought where its hazard pays for it); what
is not known yet stands in a prior, idle times with the density x^-1.3, which weighs as much as three observed ones. The
width of 10 % is that of the hybrid histogram (Shahrad et al., Serverless in the Wild, USENIX ATC 2020, section 4.2),
which buys one interval between two quantiles in place of what pays.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple

EXACT_MINUTES = 60
LONGEST_MINUTES = 1_440
"""A longer idle time counts as one that never ends: nothing is kept for it."""
RATIO = 1.03
"""Of two bins beyond an hour."""
MARGIN = 0.1
"""A part of an age: nobody's clock is trusted further."""
EDGE = 0.05
"""An age at which fewer idle times end than this part of the average about it has no window of its own: it lies in the
window of those that it is near to."""
DECAY = 0.99
"""What an observed idle time weighs after the next one."""
PRIOR_WEIGHT = 3.0
PRIOR_EXPONENT = 1.3
PRIOR_NEVER = 0.1
"""Of functions that were called once, those that nobody calls again within a day."""


class WarmWindow(NamedTuple):
    """Ages in minutes at which a container should be there, from `start` up to and with `end`."""

    start: float
    end: float


class _Reach(NamedTuple):
    """The window about a bin's age, in places of running sums."""

    start: float
    end: float
    first: int
    """The first bin whose age is in it."""
    beyond: int
    """The first bin behind those."""
    start_place: int
    """The bin in which `start` is, and how far behind the one before it; so for `end`."""
    start_beyond: float
    end_place: int
    end_beyond: float


class _Grid(NamedTuple):
    ends: tuple[int, ...]
    """The last minute of each bin."""
    widths: tuple[int, ...]
    """The minutes in each."""
    reaches: tuple[_Reach, ...]
    prior: tuple[float, ...]
    """Mass of each bin."""


@cache
def _grid() -> _Grid:
    ends = list(range(1, EXACT_MINUTES + 1))
    while ends[-1] < LONGEST_MINUTES:
        ends.append(min(LONGEST_MINUTES, max(ends[-1] + 1, round(ends[-1] * RATIO))))
    reaches = []
    for end in ends:
        start, until = (1 - MARGIN) * end, min((1 + MARGIN) * end, float(LONGEST_MINUTES))
        first, beyond = bisect_left(ends, start - 1e-9), bisect_left(ends, until + 1e-9)
        reaches.append(_Reach(start, until, first, beyond, *_place_of(ends, start), *_place_of(ends, until)))
    masses = [0.0] * len(ends)
    for minute in range(1, LONGEST_MINUTES + 1):
        masses[bisect_left(ends, minute)] += minute**-PRIOR_EXPONENT
    scale = PRIOR_WEIGHT * (1 - PRIOR_NEVER) / sum(masses)
    widths = tuple(end - before for before, end in pairwise([0, *ends]))
    return _Grid(tuple(ends), widths, tuple(reaches), tuple(mass * scale for mass in masses))


class IdleTimes:
    """The idle times of one function at one level of concurrency."""

    def __init__(self, counts: Iterable[tuple[int, float]] = (), never: float = 0.0) -> None:
        """`counts`: by number of bin, as `counts()` gives them; `never`: what was longer than a day."""
        self._counts = dict(counts)
        self._never = never
        self._unit = 1.0
        """What the next one weighs: it grows, in place of all others' decay."""

    def observe(self, minutes: float) -> None:
        """Count an idle time that has ended."""
        self._unit /= DECAY
        if minutes > LONGEST_MINUTES:
            self._never += self._unit
        else:
            place = bin_of(minutes)
            self._counts[place] = self._counts.get(place, 0.0) + self._unit
        if self._unit > 1e6:
            self._rescale()

    def counts(self) -> tuple[tuple[int, float], ...]:
        """The weight of each bin that has any, as of now."""
        self._rescale()
        return tuple(sorted(self._counts.items()))

    @property
    def never(self) -> float:
        """The weight of idle times longer than a day, as of now."""
        self._rescale()
        return self._never

    def worths(self) -> list[float]:
        """As `worths_of`, of what is known so far."""
        masses = list(_grid().prior)
        for place, count in self._counts.items():
            masses[place] += count / self._unit
        return worths_of(masses, self._never / self._unit + PRIOR_WEIGHT * PRIOR_NEVER)

    def _rescale(self) -> None:
        self._counts = {place: count / self._unit for place, count in self._counts.items()}
        self._never /= self._unit
        self._unit = 1.0


def prior_of_minutes() -> list[float]:
    """How likely it is of a function of which nothing is known that it is idle for 1, 2, ... minutes; else for ever."""
    masses = [minute**-PRIOR_EXPONENT for minute in range(1, LONGEST_MINUTES + 1)]
    scale = (1 - PRIOR_NEVER) / sum(masses)
    return [mass * scale for mass in masses]


def bin_of(minutes: float) -> int:
    """The number of the bin of an idle time of at most a day."""
    return bisect_left(_grid().ends, minutes)


def end_of_bin(place: int) -> int:
    """The last minute of a bin; of one that there is not, the longest."""
    ends = _grid().ends
    return ends[place] if 0 <= place < len(ends) else LONGEST_MINUTES


def bins() -> int:
    """How many there are."""
    return len(_grid().ends)


def worths_of(masses: Sequence[float], never: float) -> list[float]:
    """For the age of each bin, the worth (in idle minutes) of a cold start from which on a container pays there.

    Args:
        masses: how often an idle time ends in each bin.
        never: how often none does.
    """
    grid = _grid()
    chances = [0.0, *accumulate(masses)]
    total = chances[-1] + never
    # The integral of the part that lasts, up to the end of each bin. In a bin of one minute it is constant: idle
    # times end with a minute.
    lasting = [total - chance for chance in chances[:-1]]
    integral = [0.0, *accumulate(map(mul, grid.widths, lasting))]
    return [
        math.inf
        if (about := chances[behind] - chances[first]) <= 0.0 or mass * (behind - first) < EDGE * about
        else (integral[end] + end_beyond * lasting[end] - integral[start] - start_beyond * lasting[start]) / about
        for mass, (_, _, first, behind, start, start_beyond, end, end_beyond) in zip(masses, grid.reaches, strict=True)
    ]


def warm_windows(worths: Iterable[float], worth: float) -> tuple[WarmWindow, ...]:
    """The ages at which a container pays, of `IdleTimes.worths()`, if a cold start is worth so many idle minutes."""
    return tuple(_merged(reach for reach, from_ in zip(_grid().reaches, worths, strict=True) if from_ <= worth))


def _merged(reaches: Iterable[_Reach]) -> Iterator[WarmWindow]:
    start = end = -1.0
    for reach in reaches:
        if reach.start > end:
            if end > 0:
                yield WarmWindow(start, end)
            start = reach.start
        end = reach.end
    if end > 0:
        yield WarmWindow(start, end)


def _place_of(ends: Sequence[int], minute: float) -> tuple[int, float]:
    """The bin in which an age is, and how far behind the bin before it."""
    place = min(bisect_left(ends, minute), len(ends) - 1)
    return place, minute - (ends[place - 1] if place else 0)
