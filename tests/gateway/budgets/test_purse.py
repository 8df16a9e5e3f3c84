"""One budget at one home: what it grants, what it takes before, and what it presumes after a death."""

from __future__ import annotations

import random
from functools import lru_cache

from pilotlight_core.model.money.budgets import NEVER_ENDS, BilledSpending, Budget, BudgetPeriod, Tranche
from pilotlight_gateway.budgets.call_money import CallMoney
from pilotlight_gateway.budgets.purse import (
    BILLED_AFTER_S,
    LARGEST_KEPT_S,
    SETTLED_AFTER_S,
    UNHEARD_S,
    Purse,
    PurseVerdict,
)
from tests.gateway.budgets.stored_tranches import NOON, budget

FITS, WAITS, EXHAUSTED = PurseVerdict.FITS, PurseVerdict.WAITS, PurseVerdict.EXHAUSTED


@lru_cache(10_000)
def call(number: int) -> CallMoney:
    """A call, the same for each number."""
    return CallMoney("acme", "acme:zoo.chat", "k1", 0, 0, 0.0, number)


def reserve(purse: Purse, number: int, worst: int, since: float = NEVER_ENDS, seconds: float = 0.0) -> None:
    """Let a call in that can have cost its worst case after so many seconds."""
    money = call(number)
    money.worst, money.since, money.seconds = worst, since, seconds
    purse.reserve(money, worst)


def take_over(purse: Purse, number: int, worst: int) -> None:
    """A call that a former home let in."""
    money = call(number)
    money.worst, money.since, money.seconds = worst, -NEVER_ENDS, 1.0
    purse.take_over(money, worst)


def new_purse(amount: int, **more: object) -> Purse:
    """A purse that has heard that nothing is spent yet."""
    purse = Purse(budget(amount, **more), NOON)
    tell(purse, 0, NOON)
    return purse


def purse_of(amount: int, **more: object) -> Purse:
    """A purse that has taken its first tranche."""
    purse = new_purse(amount, **more)
    purse.written(purse.next_tranche(NOON))
    return purse


def tell(purse: Purse, calls: int, upto: float, other: int = 0) -> None:
    """The ledger tells what it has."""
    purse.on_billed(BilledSpending(begins=purse.span.begins, calls=calls, other=other), upto, upto)


def admit(purse: Purse, number: int, worst: int) -> PurseVerdict:
    """Ask for one call as the home does, with tranches that come at once."""
    verdict = purse.judge(worst)
    if verdict is WAITS:
        purse.wait_for(("g1", number), worst, NOON)
        purse.written(purse.next_tranche(NOON))
        verdict = purse.judge(worst)
    if verdict is FITS:
        reserve(purse, number, worst)
    return verdict


def test_worst_cases_that_fit_are_granted_and_no_more() -> None:
    """A budget for ten has ten at a time; what one did not need is there for the next."""
    purse = purse_of(1_000)
    assert [admit(purse, number, 100) for number in range(11)] == [FITS] * 10 + [EXHAUSTED]
    purse.settle(call(3), 1, NOON)
    assert admit(purse, 11, 100) is EXHAUSTED
    purse.settle(call(4), 0, NOON)
    purse.settle(call(4), 0, NOON)  # once
    assert admit(purse, 12, 100) is FITS
    assert (purse.certain, purse.reserved, purse.used) == (1, 900, 901)


def test_nothing_is_granted_beyond_what_is_taken() -> None:
    """It waits until the record has it."""
    purse = new_purse(1_000_000)
    assert purse.judge(1) is WAITS
    first = purse.next_tranche(NOON)
    assert first.taken == 10_000  # a hundredth
    assert purse.judge(1) is WAITS  # it is not written yet
    purse.written(first)
    assert (purse.judge(10_000), purse.judge(10_001), purse.judge(1_000_001)) == (FITS, WAITS, EXHAUSTED)
    purse.wait_for(("g1", 1), 60_000, NOON)
    purse.wait_for(("g1", 2), 60_000, NOON)
    assert purse.next_tranche(NOON).taken == 180_000  # for both, and one worst case more


def test_what_is_given_back_is_not_granted_any_more() -> None:
    """From before it is written on."""
    purse = purse_of(1_000_000)
    purse.wait_for(("g1", 1), 500_000, NOON)
    purse.written(purse.next_tranche(NOON))
    reserve(purse, 1, 500_000)
    purse.settle(call(1), 10, NOON)
    for after_s in (LARGEST_KEPT_S, 2 * LARGEST_KEPT_S):
        less = purse.next_tranche(NOON + after_s)
    assert less.taken == 10 + 10_000
    assert purse.judge(20_000) is WAITS


def test_a_next_home_counts_what_was_taken_as_spent_until_the_ledger_tells() -> None:
    """Calls that it adopts are no part of it; what is left of it goes when the ledger has all of before."""
    purse = Purse(budget(1_000), NOON)
    purse.load(Tranche(begins=purse.span.begins, taken=700, noted=100), NOON)
    assert (purse.certain, purse.presumed, purse.used) == (100, 600, 700)
    take_over(purse, 1, 200)
    assert (purse.presumed, purse.reserved, purse.used) == (400, 200, 700)
    assert (purse.judge(300), purse.judge(301)) == (WAITS, EXHAUSTED)
    standing = purse.standing(301, NOON)
    assert (standing.left, standing.wait_s) == (300, SETTLED_AFTER_S + BILLED_AFTER_S)

    early = BilledSpending(begins=purse.span.begins, calls=150)
    purse.on_billed(early, NOON + SETTLED_AFTER_S - 1)
    assert purse.presumed == 400  # what ran may not be there yet
    purse.on_billed(early, NOON + SETTLED_AFTER_S)
    assert (purse.certain, purse.presumed) == (100, 50)


def test_a_call_that_is_taken_over_is_no_part_of_what_others_may_have_spent() -> None:
    """Not of what ended unknown since, nor of what a home before the last presumed."""
    purse = Purse(budget(1_000), NOON)
    before = (50, NOON + 10)
    purse.load(Tranche(begins=purse.span.begins, taken=350, noted=100, presumed=(before,)), NOON)
    take_over(purse, 1, 80)
    purse.settle(call(1), None, NOON + 1)
    take_over(purse, 2, 500)

    assert purse.next_tranche(NOON).presumed == (before, (80, NOON + 1 + SETTLED_AFTER_S))
    assert purse.used == 100 + 50 + 80 + 500


def test_what_ended_here_lately_is_no_part_of_what_the_ledger_must_have() -> None:
    """So what is presumed never shrinks by it."""
    purse = Purse(budget(1_000), NOON)
    purse.load(Tranche(begins=purse.span.begins, taken=500, noted=0), NOON)
    purse.written(purse.next_tranche(NOON))
    later = NOON + SETTLED_AFTER_S
    reserve(purse, 1, 10)
    purse.settle(call(1), 7, later)
    tell(purse, 40, later)
    assert (purse.certain, purse.presumed) == (7, 40)
    tell(purse, 47, later + BILLED_AFTER_S + 1)
    assert (purse.certain, purse.presumed, purse.used) == (7, 40, 47)


def test_an_end_that_nobody_knows_costs_its_worst_case_until_the_ledger_tells() -> None:
    """It is no false refusal for ever."""
    purse = purse_of(1_000)
    assert admit(purse, 1, 900) is FITS
    purse.settle(call(1), None, NOON)
    assert (purse.used, purse.judge(200)) == (900, EXHAUSTED)
    tell(purse, 3, NOON + SETTLED_AFTER_S)
    assert purse.used == 3


def test_what_passes_no_admission_leaves_less_for_calls() -> None:
    """Idle containers spend too."""
    purse = purse_of(1_000)
    tell(purse, 0, NOON, other=950)
    assert (purse.judge(50), purse.judge(51), purse.spent) == (WAITS, EXHAUSTED, 950)
    tell(purse, 0, NOON + 1, other=1_000)
    assert purse.next_tranche(NOON).is_exhausted


def test_what_the_ledger_has_of_calls_without_a_reservation_counts() -> None:
    """They began before there was a budget."""
    purse = purse_of(1_000)
    tell(purse, 800, NOON)
    assert (purse.spent, purse.used) == (800, 800)
    purse.on_billed(BilledSpending(begins=0, calls=990), NOON + 1)
    assert (purse.spent, purse.used) == (800, 800)  # of another period


def test_a_period_ends_and_what_runs_goes_on_in_the_next() -> None:
    """What it costs counts there until the ledger tells which part is of before."""
    purse = purse_of(1_000, period=BudgetPeriod.DAY)
    assert admit(purse, 1, 400) is FITS
    assert admit(purse, 2, 600) is FITS
    purse.settle(call(2), 600, NOON)
    at = purse.span.ends
    purse.follow(purse.budget, at)
    assert (purse.certain, purse.used, purse.judge(600)) == (0, 400, WAITS)
    purse.written(purse.next_tranche(at))
    assert (purse.judge(600), purse.judge(601)) == (FITS, EXHAUSTED)
    purse.settle(call(1), 400, at + 1)
    assert (purse.certain, purse.presumed) == (0, 400)
    tell(purse, 5, at + 1 + SETTLED_AFTER_S)
    assert purse.used == 5


def test_each_threshold_is_told_once_in_a_period() -> None:
    """A home that takes over tells none again."""
    purse = purse_of(100)
    for number, spent in enumerate((49, 1, 45, 4)):
        reserve(purse, number, 50)
        purse.settle(call(number), spent, NOON)
        purse.next_tranche(NOON + number)
    told = purse.next_tranche(NOON + 9)
    assert (told.told, told.told_at) == ((50, 80), (NOON + 1, NOON + 2))

    other = Purse(budget(100), NOON)
    other.load(told, NOON)
    again = other.next_tranche(NOON + 20)
    assert (again.told, again.told_at) == (told.told, told.told_at)


def test_what_running_calls_reserve_leaves_nothing_for_what_nobody_calls() -> None:
    """Idle containers are ended before they spend what is reserved."""
    purse = purse_of(1_000)
    assert [admit(purse, number, 100) for number in range(10)] == [FITS] * 10
    tell(purse, 0, NOON + 1, other=1)
    assert purse.next_tranche(NOON + 1).is_exhausted


def test_reservations_hide_no_usage_of_others() -> None:
    """Only what calls can have cost by then: none of it, where nobody knows how long they take."""
    purse = purse_of(1_000)
    for number in range(7):
        reserve(purse, number, 100, NOON)
    tell(purse, 300, NOON + 60)
    assert (purse.used, purse.judge(1)) == (1_000, EXHAUSTED)

    purse = purse_of(1_000)
    for number in range(7):
        reserve(purse, number, 100, NOON, 600.0)
    tell(purse, 70, NOON + 60)
    assert purse.used == 700  # theirs
    tell(purse, 370, NOON + 60)
    assert purse.used == 700 + 370 - 7 * 10
    standing = purse.standing(1, NOON)
    assert standing.spent + standing.reserved + standing.left == 1_000
    for number in range(7):
        purse.settle(call(number), 10, NOON + 60)
    tell(purse, 370, NOON + 61)
    assert (purse.used, purse.spent) == (370, 370)


def test_a_call_that_was_cheap_hides_nothing_once_it_has_ended() -> None:
    """Though the ledger has no news: what it could have cost is of others."""
    purse = purse_of(1_000)
    reserve(purse, 1, 100, NOON, 30.0)
    tell(purse, 100, NOON + 60)
    assert purse.used == 100
    purse.settle(call(1), 0, NOON + 60)
    purse.next_tranche(NOON + 61)
    assert purse.used == 100

    reserve(purse, 2, 100, NOON + 60, 30.0)
    reserve(purse, 3, 100, NOON + 60, 30.0)
    tell(purse, 250, NOON + 90)
    purse.settle(call(2), 40, NOON + 90)
    assert purse.used == 250


def test_what_a_call_costs_beyond_its_reservation_counts_once() -> None:
    """While it runs it is in the ledger, and then it has ended here."""
    for seconds in (0.0, 30.0):
        purse = purse_of(1_000)
        reserve(purse, 1, 10, NOON, seconds)
        tell(purse, 60, NOON + 60)
        assert purse.used >= 60
        purse.settle(call(1), 70, NOON + 70)
        assert (purse.used, purse.spent) == (70, 70)
        tell(purse, 70, NOON + 500)
        assert (purse.used, purse.spent) == (70, 70)


def test_a_new_purse_waits_for_the_ledger_for_some_time() -> None:
    """What it tells of long before counts no more than nothing; then what is known decides."""
    purse = Purse(budget(1_000), NOON)
    purse.written(purse.next_tranche(NOON))
    assert (purse.judge(1), purse.is_waiting_for_ledger) == (WAITS, True)
    tell(purse, 1_000, NOON - 60)
    assert purse.judge(1) is EXHAUSTED
    tell(purse, 400, NOON)
    purse.written(purse.next_tranche(NOON))
    assert (purse.judge(1), purse.judge(601)) == (FITS, EXHAUSTED)

    purse = Purse(budget(1_000), NOON)
    for after_s in (0.0, UNHEARD_S - 1):
        purse.written(purse.next_tranche(NOON + after_s))
        assert purse.judge(1) is WAITS
    purse.written(purse.next_tranche(NOON + UNHEARD_S))
    assert purse.judge(1) is FITS


def test_what_runs_leaves_nothing_to_a_purse_that_has_not_heard() -> None:
    """Neither while it runs nor when it has ended."""
    purse = Purse(budget(1_000), NOON)
    reserve(purse, 1, 300, NOON)
    purse.written(purse.next_tranche(NOON))
    purse.settle(call(1), 0, NOON)
    assert purse.judge(100) is WAITS


def test_a_purse_that_has_not_heard_leaves_none_that_seems_to_have() -> None:
    """A next home waits for the ledger too."""
    purse = Purse(budget(1_000), NOON)
    unheard = purse.next_tranche(NOON)
    assert unheard.taken == 0
    other = Purse(budget(1_000), NOON)
    other.load(unheard, NOON)
    assert other.is_waiting_for_ledger
    tell(purse, 0, NOON)
    other.load(purse.next_tranche(NOON), NOON)
    assert other.is_heard


def test_another_zone_has_the_ledger_asked_and_the_next_period_has_not() -> None:
    """What was spent since the midnight of the new zone is not known here."""
    purse = purse_of(1_000)
    assert admit(purse, 1, 1_000) is FITS
    purse.settle(call(1), 1_000, NOON)
    purse.follow(budget(1_000, tz="Europe/Berlin"), NOON)
    purse.written(purse.next_tranche(NOON))
    assert purse.judge(1) is WAITS
    tell(purse, 1_000, NOON)
    assert purse.judge(1) is EXHAUSTED
    at = purse.span.ends
    purse.follow(purse.budget, at)
    purse.written(purse.next_tranche(at))
    assert purse.judge(1) is FITS


def test_a_zone_that_is_unknown_here_is_utc() -> None:
    """It was set by a gateway that knows it."""
    assert Purse(budget(1, tz="Nowhere/Here"), NOON).span == Purse(budget(1), NOON).span


def test_calls_that_ask_again_are_waited_for_once() -> None:
    """They ask every 50 ms until there is a tranche."""
    purse = new_purse(1_000_000)
    for again in range(5):
        for number in range(100):
            purse.wait_for(("g1", number), 100, NOON + 0.06 * again)
            purse.wait_for(("g1", number), 100, NOON + 0.06 * again)  # at once, as when its gateway moves it
    assert purse.next_tranche(NOON).taken == 100 * 100 + 10_000


def test_a_clock_of_the_duty_that_is_ahead_stops_nothing() -> None:
    """What it tells is of now at most."""
    purse = purse_of(1_000)
    begins = purse.span.begins
    reserve(purse, 1, 100, NOON)
    purse.settle(call(1), None, NOON)
    purse.on_billed(BilledSpending(begins=begins, other=1), NOON + 3_600, NOON)
    assert purse.presumed == 100  # what it cost need not be there yet
    purse.on_billed(BilledSpending(begins=begins, other=1_000), NOON + 10, NOON + 10)
    assert purse.spent == 1_000
    purse.on_billed(BilledSpending(begins=begins, other=1_001), NOON - 3_600, NOON - 3_600)  # ours was ahead
    assert purse.spent == 1_001


def test_what_was_taken_over_counts_only_as_far_as_it_is_of_the_period() -> None:
    """Nobody here knows when it began."""
    purse = purse_of(1_000)
    take_over(purse, 1, 900)
    purse.settle(call(1), 900, NOON)
    assert purse.used == 900
    tell(purse, 10, NOON + SETTLED_AFTER_S)
    assert purse.used == 10


def test_what_calls_cost_while_they_run_is_never_taken_for_that_of_others() -> None:
    """A hundred seeds of calls that cost what they may, and of a ledger that lags: nothing is held back but theirs."""
    for seed in range(100):
        _check_calls(random.Random(seed))


def _check_calls(rng: random.Random) -> None:
    purse, at, ended = purse_of(10**9), NOON, 0
    running: dict[int, tuple[float, float, float]] = {}  # since when, for how long, and nano-dollars per second
    bills = [(at, 0)]

    def cost(since: float, seconds: float, rate: float) -> int:
        return int(rate * min(at - since, seconds))

    for number in range(200):
        at += rng.random()
        if rng.random() < 0.6:
            seconds, rate = rng.uniform(1, 60), rng.uniform(1, 1_000)
            reserve(purse, number, int(rate * seconds) + 1, at, seconds)
            running[number] = at, seconds, rate * rng.uniform(0.2, 1)
        elif running:
            one = rng.choice(list(running))
            spent = cost(*running.pop(one))
            ended += spent
            purse.settle(call(one), spent, at)
        bills.append((at, ended + sum(cost(*one) for one in running.values())))
        late = at - rng.uniform(1, 5)
        upto, calls = max((one for one in bills if one[0] <= late), default=bills[0])
        tell(purse, calls, upto)
        assert purse.used == purse.certain + purse.reserved


def test_of_nothing_no_part_is_spent() -> None:
    """A prepaid budget begins with no amount: its thresholds are told of what is granted then."""
    empty = Budget(id="prepaid", amount=0, period=BudgetPeriod.LIFETIME, prepaid=True)
    purse = Purse(empty, 1_790_000_000.0)
    assert purse.next_tranche(1_790_000_000.0).told == ()
