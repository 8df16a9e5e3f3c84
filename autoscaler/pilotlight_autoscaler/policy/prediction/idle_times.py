"""How long a function is usually idle, and so how likely a call is at an age. Pure.

Idle times are counted in minutes, the recent ones more, one by one up to an hour and in bins of 3 % above. The hazard
of an age (minutes since the last call) is how often an idle time ends there over how many minutes were spent there. It
is taken of the age's own bin, and of all within 10 % of it: nobody's clock is trusted further, and that is the margin
of the hybrid histogram (Shahrad et al., Serverless in the Wild, USENIX ATC 2020, section 4.2).

What is not known yet stands in a prior, idle times with the density x^-1.3, and one function in ten that nobody calls
again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import cache
from itertools import accumulate
from typing import Final, NamedTuple

EXACT_MINUTES: Final = 60
LONGEST_MINUTES: Final = 1_440
"""A longer idle time counts as one that never ends."""
RATIO: Final = 1.03
"""Of two bins beyond an hour."""
MARGIN: Final = 0.1
"""A part of an age."""
DECAY: Final = 0.99
"""What an observed idle time weighs after the next one."""
PRIOR_EXPONENT: Final = 1.3
PRIOR_NEVER: Final = 0.1
"""Of functions that were called once, those that nobody calls again within a day."""


class WarmWindow(NamedTuple):
    """Ages in minutes at which a container should be there, from `start` up to and with `end`."""

    start: float
    end: float


class Hazard(NamedTuple):
    """How likely a call is in the minute that ends an age: by its bin alone, and by all about it."""

    narrow: float
    wide: float


class _Reach(NamedTuple):
    """A bin, those within the margin of it, and what the prior has there."""

    width: int
    first: int
    """The first bin within the margin ..."""
    beyond: int
    """... and the first one behind."""
    start: int
    """The minute before the first one ..."""
    end: int
    """... and the last minute of the last one."""
    mass: float
    """Of the prior: idle times that end in the bin, ..."""
    left: float
    """... that last until it, ..."""
    about: float
    """... that end within the margin, ..."""
    spent: float
    """... and minutes spent there."""


class _Grid(NamedTuple):
    ends: tuple[int, ...]
    """The last minute of each bin."""
    reaches: tuple[_Reach, ...]


@cache
def _grid() -> _Grid:
    ends = list(range(1, EXACT_MINUTES + 1))
    while ends[-1] < LONGEST_MINUTES:
        ends.append(min(LONGEST_MINUTES, max(ends[-1] + 1, round(ends[-1] * RATIO))))
    before = [0, *ends]
    masses = [0.0] * len(ends)
    for minute, mass in enumerate(prior_of_minutes(), start=1):
        masses[bisect_left(ends, minute)] += mass
    gone = [0.0, *accumulate(masses)]
    reaches = []
    for place, end in enumerate(ends):
        first = bisect_left(ends, (1 - MARGIN) * end - 1e-9)
        beyond = bisect_left(ends, (1 + MARGIN) * end + 1e-9)
        spent = sum((1.0 - gone[each]) * (ends[each] - before[each]) for each in range(first, beyond))
        own = end - before[place], first, beyond, before[first], ends[beyond - 1]
        reaches.append(_Reach(*own, masses[place], 1.0 - gone[place], gone[beyond] - gone[first], spent))
    return _Grid(tuple(ends), tuple(reaches))


class _Sums(NamedTuple):
    """Of what is counted, up to each bin that has any."""

    places: list[int]
    counts: list[float]
    minutes: list[float]
    """Each count times the last minute of its bin."""


class IdleTimes:
    """The idle times of one function at one level of concurrency."""

    def __init__(self, counts: Iterable[tuple[int, float]] = (), never: float = 0.0) -> None:
        """`counts`: by number of bin, as `counts()` gives them; `never`: what was longer than a day."""
        self._counts = dict(counts)
        self._never = never
        self._unit = 1.0
        """What the next one weighs: it grows, in place of all others' decay."""
        self._sums: _Sums | None = None

    def observe(self, minutes: float) -> None:
        """Count an idle time that has ended."""
        self._unit /= DECAY
        if minutes > LONGEST_MINUTES:
            self._never += self._unit
        else:
            place = bin_of(minutes)
            self._counts[place] = self._counts.get(place, 0.0) + self._unit
        self._sums = None
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

    def hazards(self, minutes: int, prior_weights: Iterable[float]) -> list[Hazard]:
        """Of an age of at most a day, for each weight that the prior may have, in observed idle times."""
        ends, reaches = _grid()
        place = bisect_left(ends, minutes)
        width, first, beyond, start, end, mass, lasting, near, minutes_near = reaches[place]
        places, counts, ended = self._sums or self._summed()
        from_, until, at = bisect_left(places, first), bisect_left(places, beyond), bisect_left(places, place)
        later = counts[-1] + self._never
        here = counts[at + 1] - counts[at] if at < len(places) and places[at] == place else 0.0
        left = later - counts[at] - (here / 2 if width > 1 else 0.0)
        about = counts[until] - counts[from_]
        spent = ended[until] - ended[from_] + end * (later - counts[until]) - start * (later - counts[from_])
        lasting -= mass / 2 if width > 1 else 0.0
        found = []
        for weight in prior_weights:
            ours = weight * self._unit
            narrow = (here + ours * mass) / (width * (left + ours * lasting))
            found.append(Hazard(narrow, (about + ours * near) / (spent + ours * minutes_near)))
        return found

    def _summed(self) -> _Sums:
        ends = _grid().ends
        places = sorted(self._counts)
        counts = [self._counts[place] for place in places]
        ended = [count * ends[place] for place, count in zip(places, counts, strict=True)]
        self._sums = _Sums(places, [0.0, *accumulate(counts)], [0.0, *accumulate(ended)])
        return self._sums

    def _rescale(self) -> None:
        self._counts = {place: count / self._unit for place, count in self._counts.items()}
        self._never /= self._unit
        self._unit, self._sums = 1.0, None


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
