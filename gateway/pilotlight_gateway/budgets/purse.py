"""What is left of one budget, at the home of its tenant's limits. Pure: unix seconds and nano-dollars.

    taken ──────────────────────────────────┐  durable: a next home counts all of it as spent
    used = certain + presumed + reserved + excess
      certain   calls that ended here, or at a home that noted them
      presumed  of a home that died, of gateways that died, of ends that were lost: the most that it can have been
      reserved  the worst case of each call that runs
      excess    what the ledger has of calls beyond all that: of calls without a reservation, or beyond theirs

A call may begin where `used`, what passes no admission and its worst case are within the budget. If they are, but not
within the tranche, it waits until more is taken; so it does while the ledger was not heard yet of a period of which
nothing is known here. What is presumed shrinks when the ledger has all that ended before: then `calls` of the ledger,
and what ended here since, are the most that can have been spent. The excess is reckoned anew each second: what a call
has cost is no part of it once the call has ended.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

import msgspec
import structlog

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.money.budgets import (
    NEVER_ENDS,
    BilledSpending,
    Budget,
    BudgetMode,
    BudgetSpan,
    Tranche,
    span_of,
)
from pilotlight_gateway.budgets.call_money import CallMoney

PART = 100
"""A tranche is at least this part of its budget."""
SETTLED_AFTER_S = 45.0
"""Seconds after which what an unknown end cost has been metered, stored and folded: a container whose callers are gone
may run on for 30 of them."""
BILLED_AFTER_S = 6.0
"""Seconds after which what a call cost that ended here is in the ledger."""

AHEAD_S = 2.0
"""The ledger may have what was spent so long after the instant up to which it surely has all."""
UNHEARD_S = 10.0
"""Seconds after which a new purse decides by what is known, though the ledger was not heard."""
LARGEST_KEPT_S = 30.0
"""A tranche has room for the largest worst case that was asked for in so many seconds, or twice as many."""
LONG_SINCE: Final = -NEVER_ENDS
RETRIED_S = 0.05
"""A call that waits for a tranche asks again after so many seconds, not sooner."""

MOST_PRESUMPTIONS = 16
HARD: Final = BudgetMode.HARD

log = structlog.get_logger(__name__)
ReservationKey = tuple[str, int]
"""A call: its gateway, and its number there."""


class Presumption(NamedTuple):
    """What may have been spent, and when the ledger has it if it was. Unix seconds."""

    amount: int
    settled_at: float


class PurseVerdict(Enum):
    FITS = 0
    WAITS = 1  # for the next tranche, or for the ledger
    EXHAUSTED = 2


FITS: Final = PurseVerdict.FITS
WAITS: Final = PurseVerdict.WAITS
EXHAUSTED: Final = PurseVerdict.EXHAUSTED


@dataclass(frozen=True, kw_only=True, slots=True)
class PurseStanding:
    """What a refused call is told."""

    budget: Budget
    span: BudgetSpan
    spent: int
    reserved: int
    left: int
    asked: int
    wait_s: float | None
    """Seconds until the period ends, or what is presumed is known; None: it never ends."""


class Purse:
    """One budget in its present period."""

    __slots__ = (
        "_begins", "_billed_calls", "_billed_upto", "_born", "_carried", "_excess", "_granted", "_inherited_at",
        "_is_noted", "_largest", "_largest_before", "_largest_since", "_other", "_presumed", "_presumptions",
        "_recent", "_reserved", "_reserved_sum", "_taken", "_told", "_told_at", "_waiters", "_waiting",
        "_waiting_now", "_waiting_since", "budget", "certain", "is_hard", "is_heard", "span",
    )  # fmt: skip

    def __init__(self, budget: Budget, at: float) -> None:
        self.budget = budget
        self.is_hard = budget.mode is HARD
        """Whether the worst case of each call is reserved."""
        self.span = span_here(budget, at)
        self._begins = self.span.begins
        """The same, for each call."""
        self._reserved: dict[CallMoney, int] = {}
        """What is held for each call that runs."""
        self._reserved_sum = 0
        self._carried: set[CallMoney] = set()
        """Calls that may have begun in an earlier period."""
        self._largest = self._largest_before = 0
        """The largest worst cases that were asked for: since `_largest_since`, and before."""
        self._largest_since = at
        self._begin_period(at, is_heard=False)

    def _begin_period(self, at: float, *, is_heard: bool) -> None:
        self._born = at
        self.is_heard = is_heard
        """Whether what the ledger has of the period is known, or surely nothing."""
        self._is_noted = False
        """Whether the record has the period."""
        self.certain = self._other = self._taken = self._granted = 0
        self._waiting = self._waiting_now = 0
        """The most that calls waited for at a time, and those since `_waiting_since`."""
        self._waiting_since = 0.0
        self._waiters: set[ReservationKey] = set()
        """Of these: a call that asks again at once waits once."""
        self._inherited_at = 0.0
        """When what the last home had taken is settled."""
        self._presumed = self._excess = self._billed_calls = 0
        self._presumptions: list[Presumption] = []
        """What `_presumed` is the sum of, the first to be settled first."""
        self._billed_upto = 0.0
        self._recent: deque[list[int]] = deque()
        """[second, nano-dollars] of calls that ended here, as long as the ledger may not have them."""
        self._told: tuple[int, ...] = ()
        self._told_at: tuple[float, ...] = ()

    # -- what there is ---------------------------------------------------------------------------------------------

    @property
    def used(self) -> int:
        """The most that calls can have cost, with those that run."""
        return self.certain + self._presumed + self._reserved_sum + self._excess

    @property
    def spent(self) -> int:
        """All that is known to be spent."""
        return max(self.certain, self._billed_calls) + self._other

    @property
    def presumed(self) -> int:
        return self._presumed

    @property
    def reserved(self) -> int:
        return self._reserved_sum

    @property
    def is_waiting_for_ledger(self) -> bool:
        """Whether nothing is to be done here until the ledger is heard."""
        return self._is_noted and not self.is_heard

    # -- calls -----------------------------------------------------------------------------------------------------

    def judge(self, worst: int) -> PurseVerdict:
        """Whether a call may begin that costs at most `worst`."""
        used = self.certain + self._presumed + self._reserved_sum + self._excess + worst
        if used + self._other > self.budget.amount:
            return EXHAUSTED
        if used > self._granted or not self.is_heard:
            return WAITS
        return FITS

    def wait_for(self, key: ReservationKey, worst: int, at: float) -> None:
        """Take so much more with the next tranche."""
        if not 0.0 <= at - self._waiting_since < RETRIED_S:  # from now on those that waited before ask again
            self._waiting_since, self._waiting_now = at, 0
            self._waiters.clear()
        if key in self._waiters:
            return
        self._waiters.add(key)
        self._waiting_now += worst
        self._waiting = max(self._waiting, self._waiting_now)
        self._largest = max(self._largest, worst)

    def reserve(self, money: CallMoney, amount: int) -> None:
        """Keep so much for a call that was let in."""
        if money.since < self._begins:
            self._carried.add(money)
        self._reserved[money] = amount
        self._reserved_sum += amount
        if amount > self._largest:
            self._largest = amount

    def take_over(self, money: CallMoney, amount: int) -> None:
        """A call runs that a former home let in, nobody knows when: it may have cost all of it, or some of it in an
        earlier period."""
        if money not in self._reserved:
            self.reserve(money, amount)
            self._shrink_presumed(amount)

    def settle(self, money: CallMoney, spent: int | None, at: float) -> None:
        """A call has ended, and cost `spent`; None: nobody knows. Unknown calls are ignored."""
        worst = self._reserved.pop(money, None)
        if worst is None:
            return
        self._reserved_sum -= worst
        if self._excess:  # what the ledger has of it beyond what it could have cost is known now
            known = worst if spent is None else spent
            self._excess = max(0, self._excess - known + _most_at(money, worst, self._billed_upto + AHEAD_S))
        if self._carried and money in self._carried:  # a part of it may be of the period before
            self._carried.discard(money)
            self._presume(worst if spent is None else spent, at)
        elif spent is None:
            self._presume(worst, at)
        else:
            self.certain += spent
            second, recent = int(at), self._recent
            if recent and recent[-1][0] == second:
                recent[-1][1] += spent
            else:
                recent.append([second, spent])

    def _presume(self, amount: int, at: float) -> None:
        if amount > 0:
            self._keep_presumed([*self._presumptions, Presumption(amount, at + SETTLED_AFTER_S)])

    def _keep_presumed(self, presumptions: list[Presumption]) -> None:
        """Of many the first ones become one, which is settled with the last of them."""
        if len(presumptions) > MOST_PRESUMPTIONS:
            first, second, *rest = presumptions
            presumptions = [Presumption(first.amount + second.amount, second.settled_at), *rest]
        self._presumptions = presumptions
        self._presumed = sum(one.amount for one in presumptions)

    def _shrink_presumed(self, amount: int) -> None:
        """So much is known by now of what the last home had taken; of what others may have spent nothing is."""
        left = []
        for one in self._presumptions:
            known = min(amount, one.amount) if one.settled_at == self._inherited_at else 0
            amount -= known
            if one.amount > known:
                left.append(Presumption(one.amount - known, one.settled_at))
        self._keep_presumed(left)

    def standing(self, worst: int, at: float) -> PurseStanding:
        """What to tell of a refusal."""
        left = self.budget.amount - self.used - self._other
        wait_s = None if self.span.ends == float("inf") else self.span.ends - at
        if self._presumed and worst <= left + self._presumed:
            known_s = max(1.0, self._presumptions[0].settled_at + BILLED_AFTER_S - at)
            wait_s = known_s if wait_s is None else min(wait_s, known_s)
        return PurseStanding(
            budget=self.budget,
            span=self.span,
            spent=self.used - self._reserved_sum + self._other,
            reserved=self._reserved_sum,
            left=max(0, left),
            asked=worst,
            wait_s=wait_s,
        )

    # -- what others say -------------------------------------------------------------------------------------------

    def follow(self, budget: Budget, at: float) -> None:
        """The budget may have been set anew, or its period may be over."""
        self.budget, self.is_hard = budget, budget.mode is HARD
        span = span_here(budget, at)
        if span != self.span:
            # Of what comes after it nothing can have been granted but to what runs.
            is_next = span.begins >= self.span.ends
            self.span, self._begins = span, span.begins
            self._carried.update(self._reserved)
            self._begin_period(at, is_heard=is_next)

    def load(self, known: Tranche | None, at: float, *, is_own: bool = False) -> None:
        """Take over what the durable record has: all that others took of it counts as spent.

        `is_own`: nobody else has written it.
        """
        if known is None or known.begins != self.span.begins:
            return
        self._is_noted = True
        if is_own:
            self._taken = self._granted = known.taken
            return
        self.is_heard = self.is_heard or known.taken > 0
        self._taken = self._granted = known.taken
        self.certain = max(self.certain, known.noted)
        self._told, self._told_at = known.told, known.told_at
        if not self._presumptions:
            self._keep_presumed([Presumption(*one) for one in known.presumed])
        self._inherited_at = at + SETTLED_AFTER_S
        self._presume(known.taken - self.used + self._excess, at)
        self._reckon_excess()

    def on_billed(self, billed: BilledSpending, upto: float, at: float | None = None) -> None:
        """The ledger has this of the period, with all that the bus had at `upto`; it is `at` now."""
        if at is not None:  # clocks may be wrong, and put right
            upto = min(upto, at)
            if self._billed_upto > at:
                self._billed_upto = 0.0
        if billed.begins != self.span.begins or upto < self._billed_upto:
            return
        self._billed_upto, self._billed_calls, self._other = upto, billed.calls, billed.other
        self.is_heard = self.is_heard or upto >= self._born - AHEAD_S
        while self._recent and self._recent[0][0] < upto - BILLED_AFTER_S:
            self._recent.popleft()
        due = [one for one in self._presumptions if one.settled_at <= upto]
        if due:
            most = billed.calls + sum(spent for _, spent in self._recent) - self.certain
            known = min(sum(one.amount for one in due), max(0, most))
            rest = self._presumptions[len(due) :]
            self._keep_presumed([Presumption(known, due[-1].settled_at), *rest] if known else rest)
        self._reckon_excess()

    def _reckon_excess(self) -> None:
        """What the ledger has that neither ended here, nor is presumed, nor can be of calls that run."""
        known = self.certain + self._presumed
        if self._billed_calls > known:
            upto = self._billed_upto + AHEAD_S
            known += sum([_most_at(one, amount, upto) for one, amount in self._reserved.items()])
        self._excess = max(0, self._billed_calls - known)

    # -- tranches --------------------------------------------------------------------------------------------------

    def next_tranche(self, at: float) -> Tranche:
        """What to write: as much as is needed soon. Until it is written no more is granted than both allow."""
        if not 0.0 <= at - self._largest_since < LARGEST_KEPT_S:
            self._largest_since, self._largest_before, self._largest = at, self._largest, 0
        if not 0.0 <= at - self._born < UNHEARD_S:
            self.is_heard = True
        self._reckon_excess()
        used, room = self.used, self.budget.amount - self._other
        step = max(self.budget.amount // PART, self._largest, self._largest_before)
        want = max(used, min(used + self._waiting + step, room))
        taken = self._taken
        if self._waiting or taken - used < step // 2 or taken - want > step:
            taken = want
        if not self.is_heard:
            taken = used  # so that a next home sees that it was not
        self._granted = min(self._granted, taken)
        self._note_thresholds(at)
        return Tranche(
            begins=self.span.begins,
            taken=taken,
            noted=self.certain,
            presumed=tuple(self._presumptions),
            spent=self.spent,
            amount=self.budget.amount,
            function=self.budget.function,
            key=self.budget.key,
            is_exhausted=used + self._other >= self.budget.amount,
            told=self._told,
            told_at=self._told_at,
        )

    def handed_over(self, at: float) -> Tranche:
        """What the next home has to know where this one grants nothing more: what is not used is left to it."""
        tranche = self.next_tranche(at)
        return msgspec.structs.replace(tranche, taken=max(1, self.used) if self.is_heard else self.used)

    def written(self, tranche: Tranche) -> None:
        """The record has it."""
        if tranche.begins == self.span.begins:
            self._taken = self._granted = tranche.taken
            self._waiting = self._waiting_now = 0
            self._waiters.clear()
            self._is_noted = True

    def _note_thresholds(self, at: float) -> None:
        for percent in self.budget.thresholds:
            if percent not in self._told and 0 < percent * self.budget.amount <= self.spent * 100:
                self._told, self._told_at = (*self._told, percent), (*self._told_at, at)


def _most_at(money: CallMoney, amount: int, at: float) -> int:
    """The most of what is held for a call that it can have cost by then."""
    ran_s, seconds = at - money.since, money.seconds
    if ran_s <= 0.0 or seconds <= 0.0:
        return 0
    # It can have cost its worst case after all its seconds, of which less may be held.
    return amount if ran_s >= seconds else min(amount, int(money.worst * ran_s / seconds))


def span_here(budget: Budget, at: float) -> BudgetSpan:
    """The present period of a budget; of a zone that is not known here, that of UTC."""
    try:
        return span_of(budget.period, budget.tz, int(at))
    except BadInput as error:
        log.warning("a budget's period is reckoned in UTC", budget=budget.id, error=str(error))
        return span_of(budget.period, "UTC", int(at))
