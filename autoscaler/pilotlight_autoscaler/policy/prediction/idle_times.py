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
from collections.abc import Iterable, Mapping, Sequence
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


class AgeCounts:
    """What was seen of an age: how often an idle time ended there, and how many minutes were spent there.

    Not a tuple: each minute of each function has one, and compiled its numbers need no objects.
    """

    __slots__ = ("about", "here", "lasting", "left", "reach", "spent", "unit")

    def __init__(
        self, reach: _Reach, unit: float, here: float, left: float, lasting: float, about: float, spent: float
    ) -> None:
        self.reach = reach
        self.unit = unit
        """What an observed idle time weighs."""
        self.here = here
        self.left = left
        self.lasting = lasting
        """What of the prior lasts until then."""
        self.about = about
        self.spent = spent

    def narrow(self, weight: float) -> float:
        """How likely a call is in the minute that ends the age, by its bin alone; the prior weighs `weight` of them."""
        ours, reach = weight * self.unit, self.reach
        return (self.here + ours * reach.mass) / (reach.width * (self.left + ours * self.lasting))

    def wide(self, weight: float) -> float:
        """The same by all about it."""
        ours, reach = weight * self.unit, self.reach
        return (self.about + ours * reach.about) / (self.spent + ours * reach.spent)


class _Reach:
    """A bin, those within the margin of it, and what the prior has there. No tuple, as `AgeCounts` is none."""

    __slots__ = ("about", "beyond", "end", "first", "left", "mass", "place", "spent", "start", "width")

    def __init__(self, place: int, ends: Sequence[int], masses: Sequence[float], gone: Sequence[float]) -> None:
        """Of the bin `place`; `masses` of the prior, by bin, and what is `gone` before each."""
        before, end = [0, *ends], ends[place]
        first = bisect_left(ends, (1 - MARGIN) * end - 1e-9)
        beyond = bisect_left(ends, (1 + MARGIN) * end + 1e-9)
        self.place = place
        self.width = end - before[place]
        self.first = first
        """The first bin within the margin ..."""
        self.beyond = beyond
        """... and the first one behind."""
        self.start = before[first]
        """The minute before the first one ..."""
        self.end = ends[beyond - 1]
        """... and the last minute of the last one."""
        self.mass = masses[place]
        """Of the prior: idle times that end in the bin, ..."""
        self.left = 1.0 - gone[place]
        """... that last until it, ..."""
        self.about = gone[beyond] - gone[first]
        """... that end within the margin, ..."""
        self.spent = sum((1.0 - gone[each]) * (ends[each] - before[each]) for each in range(first, beyond))
        """... and minutes spent there."""


def prior_of_minutes() -> list[float]:
    """How likely it is of a function of which nothing is known that it is idle for 1, 2, ... minutes; else for ever."""
    masses = [minute**-PRIOR_EXPONENT for minute in range(1, LONGEST_MINUTES + 1)]
    scale = (1 - PRIOR_NEVER) / sum(masses)
    return [mass * scale for mass in masses]


def _ends() -> list[int]:
    ends = list(range(1, EXACT_MINUTES + 1))
    while ends[-1] < LONGEST_MINUTES:
        ends.append(min(LONGEST_MINUTES, max(ends[-1] + 1, round(ends[-1] * RATIO))))
    return ends


def _reaches() -> list[_Reach]:
    masses = [0.0] * len(ENDS)
    for minute, mass in enumerate(prior_of_minutes(), start=1):
        masses[bisect_left(ENDS, minute)] += mass
    gone = [0.0, *accumulate(masses)]
    made = [_Reach(place, ENDS, masses, gone) for place in range(len(ENDS))]
    return [made[0], *(made[bisect_left(ENDS, minute)] for minute in range(1, LONGEST_MINUTES + 1))]


ENDS: Final = _ends()
"""The last minute of each bin."""
_REACHES: Final = _reaches()
"""Of the bin of each minute up to a day."""


class _Sums:
    """Of what is counted, up to each bin that has any."""

    __slots__ = ("counts", "minutes", "places")

    def __init__(self, weights: Mapping[int, float]) -> None:
        self.places = sorted(weights)
        self.counts = [0.0, *accumulate(weights[place] for place in self.places)]
        self.minutes = [0.0, *accumulate(weights[place] * ENDS[place] for place in self.places)]
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

    def at_age(self, minutes: int) -> AgeCounts:
        """What was seen of an age of at most a day."""
        reach, sums = _REACHES[minutes], self._sums
        if sums is None:
            sums = self._sums = _Sums(self._counts)
        places, counts, ended = sums.places, sums.counts, sums.minutes
        from_, until = bisect_left(places, reach.first), bisect_left(places, reach.beyond)
        place, at = reach.place, bisect_left(places, reach.place)
        later = counts[-1] + self._never
        here = counts[at + 1] - counts[at] if at < len(places) and places[at] == place else 0.0
        left = later - counts[at] - (here / 2 if reach.width > 1 else 0.0)
        about = counts[until] - counts[from_]
        beyond, before = reach.end * (later - counts[until]), reach.start * (later - counts[from_])
        spent = ended[until] - ended[from_] + beyond - before
        lasting = reach.left - (reach.mass / 2 if reach.width > 1 else 0.0)
        return AgeCounts(reach, self._unit, here, left, lasting, about, spent)

    def _rescale(self) -> None:
        self._counts = {place: count / self._unit for place, count in self._counts.items()}
        self._never /= self._unit
        self._unit, self._sums = 1.0, None


def bin_of(minutes: float) -> int:
    """The number of the bin of an idle time of at most a day."""
    return bisect_left(ENDS, minutes)


def end_of_bin(place: int) -> int:
    """The last minute of a bin; of one that there is not, the longest."""
    return ENDS[place] if 0 <= place < len(ENDS) else LONGEST_MINUTES


def bins() -> int:
    """How many there are."""
    return len(ENDS)
