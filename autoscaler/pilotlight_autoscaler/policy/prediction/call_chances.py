"""How likely it is that a function's next minute needs each level of concurrency. Pure.

A container pays in a minute if the chance that it is used there is more than one in its worth: each minute is bought
for itself, so whoever knows the chance best pays least, whatever a cold start is worth. Several experts guess it:

    hazards   of the level's age, by its idle times: of the bin alone and of those about it, with much and with little
              of the prior; and of the prior alone
    rates     the part of minutes that needed the level lately, for three half-lives
    day       the same of the half-hour of the day

Their logarithms of odds are mixed with weights that begin alike, and that each minute moves by how wrong the mixture
was (logistic mixing, as in Mahoney's PAQ; the step is that of gradient descent on the coding cost). So a function that
keeps time trusts the bin, one whose calls come at random its rates, and what is new the prior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from pilotlight_autoscaler.policy.prediction.idle_times import LONGEST_MINUTES, IdleTimes

LEVELS: Final = 4
"""Of concurrency that have idle times, weights and a day of their own; those above have the last one's."""
MOST_KEPT: Final = 16
"""Containers that are kept: what a burst needed beyond them goes with the function's window."""
MUCH_PRIOR: Final = 3.0
LITTLE_PRIOR: Final = 0.3
"""Idle times that the prior weighs as much as, for two pairs of experts."""
HALF_LIVES = (8.0, 60.0, 480.0)
"""Minutes."""
DECAYS = tuple(0.5 ** (1 / minutes) for minutes in HALF_LIVES)
SLOT_MINUTES: Final = 30
DAY_MINUTES: Final = 1_440
SLOTS: Final = DAY_MINUTES // SLOT_MINUTES
SLOT_STEP: Final = 1 - 0.5 ** (1 / (2 * SLOT_MINUTES))
"""What a minute counts in its half-hour of the day: half of what is known of it is of the last two days."""
SLOT_PRIOR: Final = 3
USUAL: Final = 0.03
"""The part of a half-hour's minutes that is called, as long as nothing is known."""
WEIGHTS = (0.0, 0.2, 0.2, 0.2, 0.2, 0.0, 0.07, 0.07, 0.07, 0.0)
"""Of a constant, the hazards, the prior's own, the rates and the day, to begin with."""
STEP: Final = 0.02
STEP_MINUTES: Final = 300
LEAST_STEP: Final = 0.004
"""How far an error moves the weights: less with each minute, down to the last one."""
NEVER: Final = -math.inf
LEAST_CHANCE: Final = 1e-4
MOST_CHANCE: Final = 1 - LEAST_CHANCE
"""What is less, or more, counts as this: a logarithm of odds is bounded."""


class LevelRecord(NamedTuple):
    """What is known of a level."""

    age: int
    """Minutes since it was needed."""
    minutes: int
    """Since it was needed first."""
    rates: tuple[float, ...]
    """Minutes that needed it, each by its half-life."""


class LawRecord(NamedTuple):
    """What is known of the calls of a level."""

    weights: tuple[float, ...] = WEIGHTS
    day: tuple[float, ...] = (USUAL,) * SLOTS
    """The part of minutes that is called, of each half-hour."""


class _Odds:
    """What each expert says of a minute, as a logarithm of odds.

    Each has a name, here and in `_Weights`: each minute of each function has nine, and compiled such numbers need no
    objects, unlike those of a list.
    """

    __slots__ = ("day", "hour", "narrow", "own_narrow", "own_wide", "prior", "slot", "soon", "wide")

    def __init__(self) -> None:
        self.wide = 0.0
        """By the hazard of all ages about, with much of the prior ..."""
        self.narrow = 0.0
        """... and of the age's own bin; ..."""
        self.own_wide = 0.0
        self.own_narrow = 0.0
        """... the same with little of it."""
        self.prior = 0.0
        self.soon = 0.0
        self.hour = 0.0
        self.day = 0.0
        """By the rates of the last minutes, each with another half-life."""
        self.slot = 0.0
        """By the half-hour of the day."""


class _Weights:
    """Of the experts of a level."""

    __slots__ = ("always", "day", "hour", "narrow", "own_narrow", "own_wide", "prior", "slot", "soon", "wide")

    def __init__(self, known: Sequence[float]) -> None:
        """`known`: in the order of `WEIGHTS`."""
        self.always = known[0]
        self.wide, self.narrow = known[1], known[2]
        self.own_wide, self.own_narrow = known[3], known[4]
        self.prior = known[5]
        self.soon, self.hour, self.day = known[6], known[7], known[8]
        self.slot = known[9]

    def mixed(self, said: _Odds) -> float:
        """The mixture of what the experts have said."""
        return (
            self.always
            + self.wide * said.wide
            + self.narrow * said.narrow
            + self.own_wide * said.own_wide
            + self.own_narrow * said.own_narrow
            + self.prior * said.prior
            + self.soon * said.soon
            + self.hour * said.hour
            + self.day * said.day
            + self.slot * said.slot
        )

    def move(self, said: _Odds, by: float) -> None:
        """Move each by what its expert has said."""
        self.always += by
        self.wide += by * said.wide
        self.narrow += by * said.narrow
        self.own_wide += by * said.own_wide
        self.own_narrow += by * said.own_narrow
        self.prior += by * said.prior
        self.soon += by * said.soon
        self.hour += by * said.hour
        self.day += by * said.day
        self.slot += by * said.slot

    def all(self) -> tuple[float, ...]:
        """In the order of `WEIGHTS`."""
        return (
            self.always, self.wide, self.narrow, self.own_wide, self.own_narrow, self.prior, self.soon, self.hour,
            self.day, self.slot,
        )  # fmt: skip


class _Law:
    """Idle times, weights and day of one level."""

    __slots__ = ("day", "times", "weights")

    def __init__(self, times: IdleTimes, record: LawRecord) -> None:
        self.times = times
        self.weights = _Weights(record.weights)
        self.day = list(record.day)


class _Rate:
    """The part of minutes that needed a level lately, by a half-life."""

    __slots__ = ("_decay", "_minutes", "called")

    def __init__(self, decay: float, called: float, minutes: int) -> None:
        """`called`: of as many `minutes`, each by its half-life."""
        self._decay = decay
        self.called = called
        self._minutes = (1 - decay**minutes) / (1 - decay)
        """By the same decay."""

    def observe(self, called: float) -> None:
        """A minute ended that needed it, 1.0, or did not, 0.0."""
        self.called = self.called * self._decay + called
        self._minutes = self._minutes * self._decay + 1.0

    def observe_idle(self, minutes: int) -> None:
        """So many minutes ended that did not, one after the other."""
        for _ in range(minutes):
            self.observe(0.0)

    def chance(self) -> float:
        """Of the next minute, by the estimate of Krichevsky and Trofimov."""
        return (self.called + 0.5) / (self._minutes + 1.0)


class _Level:
    """One level of concurrency, from the minute on that needed it first."""

    __slots__ = (
        "_behind", "_hour", "_is_expected", "_knows", "_law", "_learns", "_long", "_odds", "_said", "_soon", "age",
        "minutes",
    )  # fmt: skip

    def __init__(self, law: _Law, record: LevelRecord, minute: int, *, learns: bool) -> None:
        """`minute`: that goes on, since 1970."""
        self._law = law
        self._learns = learns
        self.age, self.minutes = record.age, record.minutes
        soon, hour, long = [
            _Rate(decay, called, record.minutes) for decay, called in zip(DECAYS, record.rates, strict=True)
        ]
        self._soon, self._hour, self._long = soon, hour, long
        self._said = _Odds()
        self._knows = False
        """Whether the experts have said anything: of what was idle for too long nobody does."""
        self._odds = NEVER
        self._is_expected = False
        """Whether that is of the next minute. Of a level that does not learn nobody may ever ask."""
        self._behind = 0
        """Minutes without need that its rates have not counted, for the same reason."""
        self.expect(minute)

    def observe(self, *, needed: bool, minute: int) -> None:
        """A minute ended."""
        called = 1.0 if needed else 0.0
        if self._learns and self._knows:
            self._learn(called, minute)
        self.minutes += 1
        self.age += 1
        if not (needed or self._learns):
            self._behind += 1
            self._is_expected = False
            return
        self._catch_up()
        self._soon.observe(called)
        self._hour.observe(called)
        self._long.observe(called)
        if needed:
            if self._learns:
                self._law.times.observe(self.age)
            self.age = 0
        self.expect(minute + 1)

    def record(self) -> LevelRecord:
        """What is known of it."""
        self._catch_up()
        return LevelRecord(self.age, self.minutes, (self._soon.called, self._hour.called, self._long.called))

    def skip(self, minutes: int, minute: int) -> None:
        """It was not needed for so many minutes, and `minute` goes on."""
        self.age += minutes
        self.expect(minute)

    def expect(self, minute: int) -> None:
        """A minute goes on. Who learns says at once how likely it is that it needs it, the others when asked."""
        self._is_expected = False
        if self._learns:
            self._predict(minute)

    def odds(self, minute: int) -> float:
        """The logarithm of those that the minute which goes on needs it."""
        if not self._is_expected:
            self._predict(minute)
        return self._odds

    def _predict(self, minute: int) -> None:
        self._is_expected = True
        if self.age >= LONGEST_MINUTES:
            self._knows, self._odds = False, NEVER
            return
        law, age, said = self._law, self.age + 1, self._said
        if self._behind:
            self._catch_up()
        known = law.times.at_age(age)
        said.wide, said.narrow = _stretched(known.wide(MUCH_PRIOR)), _stretched(known.narrow(MUCH_PRIOR))
        said.own_wide, said.own_narrow = _stretched(known.wide(LITTLE_PRIOR)), _stretched(known.narrow(LITTLE_PRIOR))
        said.prior = PRIOR_ODDS[age]
        said.soon = _stretched(self._soon.chance())
        said.hour = _stretched(self._hour.chance())
        said.day = _stretched(self._long.chance())
        said.slot = _stretched(law.day[minute % DAY_MINUTES // SLOT_MINUTES])
        self._knows, self._odds = True, law.weights.mixed(said)

    def _catch_up(self) -> None:
        if self._behind:
            for rate in (self._soon, self._hour, self._long):
                rate.observe_idle(self._behind)
            self._behind = 0

    def _learn(self, needed: float, minute: int) -> None:
        law, minutes = self._law, self.minutes
        step = STEP / (1 + minutes / STEP_MINUTES)
        if step < LEAST_STEP:
            step = LEAST_STEP
        law.weights.move(self._said, step * (needed - 1 / (1 + math.exp(-self._odds))))
        slot, within = minute % DAY_MINUTES // SLOT_MINUTES, minute % SLOT_MINUTES
        known = minutes // DAY_MINUTES * SLOT_MINUTES + (minutes if minutes < within else within)
        part = 1 / (SLOT_PRIOR + 1 + known)
        day = law.day
        day[slot] += (part if part > SLOT_STEP else SLOT_STEP) * (needed - day[slot])


class CallChances:
    """The levels of one function."""

    def __init__(
        self,
        times: Sequence[IdleTimes],
        minute: int = 0,
        levels: Sequence[LevelRecord] = (),
        laws: Sequence[LawRecord] = (),
    ) -> None:
        """`times`: of the first `LEVELS` levels; `minute`: that goes on, since 1970; the others: what was stored."""
        self.minute = minute
        known = [*laws, *[LawRecord()] * LEVELS]
        self._laws = [_Law(each, record) for each, record in zip(times, known, strict=False)]
        self._levels: list[_Level] = []
        for record in levels[:MOST_KEPT]:
            self._add(record)

    def observe(self, needed: int) -> None:
        """A minute ended in which so many containers were needed."""
        minute = self.minute
        for place, level in enumerate(self._levels):
            level.observe(needed=needed > place, minute=minute)
        self.minute = minute + 1
        while len(self._levels) < min(needed, MOST_KEPT):
            self._add(LevelRecord(0, 1, (1.0,) * len(HALF_LIVES)))

    def skip(self, minutes: int) -> None:
        """Of so many minutes nobody knows what they needed."""
        self.minute += minutes
        for level in self._levels:
            level.skip(minutes, self.minute)

    def warm(self, least: float) -> int:
        """How many levels have at least these odds, as a logarithm; each with all below it."""
        for place, level in enumerate(self._levels):
            if level.odds(self.minute) < least:
                return place
        return len(self._levels)

    def odds(self) -> list[float]:
        """The logarithm of each level's."""
        return [level.odds(self.minute) for level in self._levels]

    def levels(self) -> list[LevelRecord]:
        """Of all that were needed at some time."""
        return [level.record() for level in self._levels]

    def laws(self) -> list[LawRecord]:
        """Of those levels, as far as they have their own."""
        return [LawRecord(law.weights.all(), tuple(law.day)) for law in self._laws[: len(self._levels)]]

    def _add(self, record: LevelRecord) -> None:
        place = len(self._levels)
        law = self._laws[min(place, LEVELS - 1)]
        self._levels.append(_Level(law, record, self.minute, learns=place < LEVELS))


def least_odds(worth: float) -> float:
    """The logarithm of the odds from which on a container pays, if a cold start is worth so many idle minutes.

    One that is there in vain costs a minute, one that is used half of one, and one that is missing a start.
    """
    return -math.log(worth - 0.5) if worth > 0.5 else math.inf


def _stretched(chance: float) -> float:
    if chance < LEAST_CHANCE:
        chance = LEAST_CHANCE
    elif chance > MOST_CHANCE:
        chance = MOST_CHANCE
    return math.log(chance / (1 - chance))


PRIOR_ODDS: Final = [
    0.0,
    *[_stretched(IdleTimes().at_age(age).narrow(1.0)) for age in range(1, LONGEST_MINUTES + 1)],
]
"""By age in minutes, of a function of which nothing is known."""
