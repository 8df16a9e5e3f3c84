"""What is remembered of one function: the minutes in which it needed containers, and what was learnt of them. Pure.

Time is in unix seconds. A record of it is at most `MOST_BYTES` long, so that each leader knows what the one before it
knew.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from itertools import takewhile

import msgspec

from pilotlight_autoscaler.policy.prediction.call_chances import (
    HALF_LIVES,
    LEVELS,
    MOST_KEPT,
    SLOTS,
    WEIGHTS,
    CallChances,
    LawRecord,
    LevelRecord,
)
from pilotlight_autoscaler.policy.prediction.forecast import HoltForecast
from pilotlight_autoscaler.policy.prediction.idle_times import IdleTimes, bins, end_of_bin
from pilotlight_autoscaler.policy.prediction.memory_record import MemoryRecord
from pilotlight_autoscaler.policy.prediction.method_set import standard_methods
from pilotlight_autoscaler.policy.prediction.minute_methods import LikelyWarmth
from pilotlight_autoscaler.policy.prediction.prewarm_budget import PrewarmBudget
from pilotlight_autoscaler.policy.prediction.prior_costs import prior_of_likely
from pilotlight_autoscaler.policy.prediction.shadow_pool import LIKELY, NOTHING, MethodChoice, ShadowCost, ShadowPool

MINUTE_S = 60.0
WORTH = 60.0
"""Idle seconds of a container that a second of a caller's wait for a start is worth."""
QUICK_S = 5.0
"""A start that takes less is not worth a container that waits: callers can bear it."""
LOADS = 20
"""The latest starts, of which the second longest says how long one takes: their 95 % quantile."""
FIRST_LOAD_S = 1.0
"""How long a start takes, as long as none has ended."""
MOST_LEAD = 10
"""Minutes ahead that a forecast looks."""
MOST_MISSED = 10
"""Minutes without a word that are caught up one by one; of more nobody knows what was called, and none is charged."""
LARGEST_ODDS = 500.0
"""Logarithms beyond are no numbers for an exponential."""
MOST_BYTES = 2_048
KEPT_BINS, KEPT_ERRORS = 36, 60


class FunctionMemory:
    """Of one function."""

    def __init__(self, window_s: float, at: float, known: MemoryRecord | None = None) -> None:
        """`window_s`: how long its idle containers stay anyway."""
        record = known or MemoryRecord(minute=int(at // MINUTE_S))
        self._loads = deque((ms / 1000.0 for ms in record.loads_ms), maxlen=LOADS)
        self._load_s = _long_load_s(self._loads)
        self._minute = record.minute
        self._needed = record.needed
        self._before = 0
        self._ahead = 0
        """The most containers that a forecast alone asked for in this minute."""
        self._worth = self.worth
        self._times = _idle_times(record)
        self.chances = CallChances(self._times, record.minute, _levels(record), _laws(record))
        self._likely = LikelyWarmth(self.chances, self._worth)
        self._forecast = _forecast(record, self.lead)
        costs = {name: ShadowCost(idle / 16, cold / 16) for name, (idle, cold) in record.costs.items()}
        standard = standard_methods(self._likely, self._worth, self._forecast, _seen(record))
        self._window_s = window_s
        self._pool = ShadowPool(standard.methods, round(window_s / MINUTE_S), costs)
        self._pool.resume([None if age < 0 else age for age in (*record.ages, *[-1] * MOST_KEPT)][:MOST_KEPT])
        self._level: int | None = None
        """What the chosen method says of this minute; None: it is to be asked."""
        self.age_minutes = record.minutes
        """Minutes that it has seen end."""
        self._choice = MethodChoice(standard.priors, record.chosen)
        self._choose()
        self.most_ahead = MOST_KEPT
        """What its tenant's other functions leave for it, beyond what calls use."""
        self.is_asked = True
        """Whether what it foretells counts."""
        self.prewarms = PrewarmBudget(record.prewarms)
        self.service_s = record.service_ms / 1000.0
        """How long its calls ran, when something was last said of it; 0: never."""
        self._version = record.version
        self._taken_at = self._up_at = -math.inf
        self._taken = 0

    @property
    def load_s(self) -> float:
        """How long a start takes."""
        return self._load_s

    def chance(self) -> float:
        """How likely it is called in this minute."""
        odds = self.chances.odds()
        return 1 / (1 + math.exp(-odds[0])) if odds and odds[0] > -LARGEST_ODDS else 0.0

    @property
    def worth(self) -> float:
        """Idle minutes that a cold start is worth."""
        return self.load_s * WORTH / MINUTE_S if self.load_s >= QUICK_S else 0.0

    @property
    def lead(self) -> int:
        """Minutes that a start takes, rounded up."""
        return min(MOST_LEAD, max(1, math.ceil(self.load_s / MINUTE_S)))

    @property
    def costs(self) -> dict[str, ShadowCost]:
        """What each method would have cost."""
        return dict(self._pool.costs)

    @property
    def method(self) -> str:
        """The chosen one."""
        return self._choice.chosen

    @property
    def is_known(self) -> bool:
        """Whether any method would have a container there at some time."""
        return self.method != NOTHING

    def on_deploy(self, version: str, window_s: float, at: float) -> None:
        """This version is deployed; it takes over from the one before it, if there was one."""
        if window_s != self._window_s:
            self._window_s = window_s
            self._pool.set_window(round(window_s / MINUTE_S))
        if self._version and version != self._version:
            self._taken_at, self._taken = at, self.carried()
        self._version = version

    def taken_over(self, version: str, at: float) -> int:
        """Containers that a version just deployed should have for the load of the one before it."""
        recent = self._taken_at <= at < self._taken_at + max(MINUTE_S, self._window_s)
        return self._taken if recent and version == self._version else 0

    def on_up(self, at: float) -> None:
        """Containers of it were started."""
        self._up_at = at

    def cool_at(self, cooldown_s: float) -> float:
        """When it is so long ago that containers were started."""
        return self._up_at + cooldown_s

    def on_load(self, seconds: float) -> None:
        """A start ended after so long."""
        self._loads.append(seconds)
        self._load_s = _long_load_s(self._loads)
        if not 0.8 * self._worth <= self.worth <= 1.25 * self._worth:
            self._worth = self.worth
            self._likely.set_worth(self._worth)
            self._level = None
            self._choice.change_prior(LIKELY, prior_of_likely(self._worth))
            self._choose()

    def observe(self, needed: int, at: float) -> bool:
        """So many containers are needed now, by calls; whether a minute with calls has ended before."""
        called = self.advance(at)
        if needed > self._needed:
            self._needed = needed
        return called

    def advance(self, at: float, most_missed: int = MOST_MISSED) -> bool:
        """End the minutes that are over; whether there were calls in one of them.

        A clock that goes back a little ends none twice; one that was wrong by more begins anew with what it says now,
        since nothing would be learnt, and what is foretold would stay, until it is as late again. For the same reason
        nothing counts as later than now.

        Args:
            most_missed: minutes without a word that are caught up; of more nobody knows what was called.
        """
        if self._up_at > at:
            self._up_at = at
        if self._taken_at > at:
            self._taken_at = at
        now = int(at // MINUTE_S)
        if now == self._minute:
            return False
        called = False
        if self._minute - now > MOST_MISSED:
            self._minute = self.chances.minute = now
        if now - self._minute > most_missed:
            called = self._needed > 0
            self._end_minute()
            self._skip(now - self._minute)
        while self._minute < now:
            called = called or self._needed > 0
            self._end_minute()
        return called

    @property
    def needed(self) -> int:
        """The most containers that calls have needed in this minute."""
        return self._needed

    @property
    def used(self) -> int:
        """The most containers that calls have needed in this minute or the one before."""
        return self._needed if self._needed > self._before else self._before

    def ahead(self) -> int:
        """Containers that should be there by what is forecast, whatever is called now."""
        foretold, used = self.foretold(), self.used
        if used >= foretold:
            return foretold
        most = used + self.most_ahead
        return most if most < foretold else foretold

    def foretold(self) -> int:
        """The same, whatever its tenant's other functions leave for it."""
        if not self.is_asked:
            return 0
        level = self._level
        if level is None:
            level = self._level = self._pool.level(self._choice.chosen)
        if self._needed > level and self._choice.chosen != NOTHING:  # what this minute needs stays to its end
            level = self._needed if self._needed < MOST_KEPT else max(level, MOST_KEPT)
        return self.prewarms.allowed(level)

    def carried(self) -> int:
        """The most containers that calls have needed within the function's window."""
        return max(self._needed, self._before, *self._pool.recent)

    def note_ahead(self, containers: int) -> None:
        """So many are there, or start, for a forecast alone."""
        if containers > self._ahead:
            self._ahead = containers

    def record(self) -> bytes:
        """At most `MOST_BYTES` that `restored` reads."""
        levels, laws = self.chances.levels(), self.chances.laws()
        record = MemoryRecord(
            minute=self._minute,
            needed=self._needed,
            loads_ms=tuple(round(seconds * 1000) for seconds in self._loads),
            idle=tuple(_heaviest(times) for times in self._times),
            never=tuple(round(16 * times.never) for times in self._times),
            ages=tuple(level.age for level in levels),
            known=tuple(level.minutes for level in levels),
            rates=tuple(tuple(round(64 * rate) for rate in level.rates) for level in levels),
            weights=tuple(tuple(round(4_000 * weight) for weight in law.weights) for law in laws),
            days=tuple(bytes(round(255 * math.sqrt(part)) for part in law.day) for law in laws),
            costs={name: (round(16 * cost[0]), round(16 * cost[1])) for name, cost in self._pool.costs.items()},
            chosen=self.method,
            forecast=(round(16 * self._forecast.level), round(16 * self._forecast.trend)),
            errors=tuple(round(16 * error) for error in list(self._forecast.errors)[-KEPT_ERRORS:]),
            prewarms=self.prewarms.per_day,
            minutes=self.age_minutes,
            version=self._version,
            service_ms=round(1000.0 * self.service_s),
        )
        return msgspec.msgpack.encode(record)

    def _skip(self, minutes: int) -> None:
        self._minute += minutes
        self._pool.skip(minutes)
        self.chances.skip(minutes)
        self._level = None
        self._before = 0

    def _end_minute(self) -> None:
        self.prewarms.observe(self._ahead, self._needed)
        self._pool.observe(self._needed)
        self._level = None
        self._minute += 1
        self.age_minutes += 1
        self._before = self._needed
        if self._needed and self._choice.is_due(self.age_minutes):
            self._choose()
        self._needed = self._ahead = 0

    def _choose(self) -> None:
        self._choice.choose(self._pool.spent, self._worth, self.age_minutes)
        self._level = None


def restored(encoded: bytes, window_s: float, at: float) -> FunctionMemory:
    """The memory that was stored.

    Raises:
        msgspec.MsgspecError: if it is none.
    """
    return FunctionMemory(window_s, at, read_record(encoded))


def read_record(encoded: bytes) -> MemoryRecord:
    """What `record` has stored.

    Raises:
        msgspec.MsgspecError: if it is none.
    """
    return msgspec.msgpack.decode(encoded, type=MemoryRecord)


def _long_load_s(loads: Collection[float]) -> float:
    ordered = sorted(loads)
    return ordered[-2] if len(ordered) == LOADS else max(ordered, default=FIRST_LOAD_S)


def _idle_times(record: MemoryRecord) -> list[IdleTimes]:
    """Of each level."""
    bins_, nevers = (*record.idle, *([()] * LEVELS)), (*record.never, *([0] * LEVELS))
    return [
        IdleTimes(((place, weight / 16) for place, weight in level if 0 <= place < bins()), never / 16)
        for level, never in zip(bins_[:LEVELS], nevers, strict=False)
    ]


def _levels(record: MemoryRecord) -> list[LevelRecord]:
    """Of a record that knows ages alone, each was needed once."""
    known, rates = (*record.known, *[1] * MOST_KEPT), (*record.rates, *[(64,) * len(HALF_LIVES)] * MOST_KEPT)
    needed = takewhile(lambda age: age >= 0, record.ages)
    return [
        LevelRecord(age, minutes, tuple(rate / 64 for rate in each))
        for age, minutes, each in zip(needed, known, rates, strict=False)
        if len(each) == len(HALF_LIVES)
    ]


def _laws(record: MemoryRecord) -> list[LawRecord]:
    return [
        LawRecord(tuple(weight / 4_000 for weight in weights), tuple((part / 255) ** 2 for part in day))
        for weights, day in zip(record.weights, record.days, strict=False)
        if len(weights) == len(WEIGHTS) and len(day) == SLOTS
    ]


def _seen(record: MemoryRecord) -> list[list[int]]:
    return [[end_of_bin(place) for place, weight in level for _ in range(round(weight / 16))] for level in record.idle]


def _heaviest(times: IdleTimes) -> tuple[tuple[int, int], ...]:
    ordered = sorted(times.counts(), key=lambda each: -each[1])[:KEPT_BINS]
    return tuple(sorted((place, round(16 * weight)) for place, weight in ordered if round(16 * weight)))


def _forecast(record: MemoryRecord, lead: int) -> HoltForecast:
    level, trend = record.forecast
    errors = [error / 16 for error in record.errors]
    return HoltForecast(lead, level=level / 16, trend=trend / 16, errors=errors)
