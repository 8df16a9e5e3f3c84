"""One budget at one home: what it grants, what it takes before, and what it presumes after a death."""

from __future__ import annotations

from pilotlight_core.model.money.budgets import BilledSpending, BudgetPeriod, Tranche
from pilotlight_gateway.budgets.purse import BILLED_AFTER_S, SETTLED_AFTER_S, Purse, PurseVerdict
from tests.gateway.budgets.stored_tranches import NOON, budget

FITS, WAITS, EXHAUSTED = PurseVerdict.FITS, PurseVerdict.WAITS, PurseVerdict.EXHAUSTED


def key(number: int) -> tuple[str, int]:
    """A call."""
    return "g1", number


def purse_of(amount: int, **more: object) -> Purse:
    """A purse that has taken its first tranche."""
    purse = Purse(budget(amount, **more), NOON)
    purse.written(purse.next_tranche(NOON))
    return purse


def admit(purse: Purse, number: int, worst: int) -> PurseVerdict:
    """Ask for one call as the home does, with tranches that come at once."""
    verdict = purse.judge(worst)
    if verdict is WAITS:
        purse.wait_for(worst)
        purse.written(purse.next_tranche(NOON))
        verdict = purse.judge(worst)
    if verdict is FITS:
        purse.reserve(key(number), worst)
    return verdict


def test_worst_cases_that_fit_are_granted_and_no_more() -> None:
    """A budget for ten has ten at a time; what one did not need is there for the next."""
    purse = purse_of(1_000)
    assert [admit(purse, number, 100) for number in range(11)] == [FITS] * 10 + [EXHAUSTED]
    purse.settle(key(3), 1, NOON)
    assert admit(purse, 11, 100) is EXHAUSTED
    purse.settle(key(4), 0, NOON)
    purse.settle(key(4), 0, NOON)  # once
    assert admit(purse, 12, 100) is FITS
    assert (purse.certain, purse.reserved, purse.used) == (1, 900, 901)


def test_nothing_is_granted_beyond_what_is_taken() -> None:
    """It waits until the record has it."""
    purse = Purse(budget(1_000_000), NOON)
    assert purse.judge(1) is WAITS
    first = purse.next_tranche(NOON)
    assert first.taken == 10_000  # a hundredth
    assert purse.judge(1) is WAITS  # it is not written yet
    purse.written(first)
    assert (purse.judge(10_000), purse.judge(10_001), purse.judge(1_000_001)) == (FITS, WAITS, EXHAUSTED)
    purse.wait_for(60_000)
    purse.wait_for(60_000)
    assert purse.next_tranche(NOON).taken == 180_000  # for both, and one worst case more


def test_what_is_given_back_is_not_granted_any_more() -> None:
    """From before it is written on."""
    purse = purse_of(1_000_000)
    purse.wait_for(500_000)
    purse.written(purse.next_tranche(NOON))
    purse.reserve(key(1), 500_000)
    purse.settle(key(1), 10, NOON)
    purse._largest = 0
    less = purse.next_tranche(NOON)
    assert less.taken == 10 + 10_000
    assert purse.judge(20_000) is WAITS


def test_a_next_home_counts_what_was_taken_as_spent_until_the_ledger_tells() -> None:
    """Calls that it adopts are no part of it; what is left of it goes when the ledger has all of before."""
    purse = Purse(budget(1_000), NOON)
    purse.load(Tranche(begins=purse.span.begins, taken=700, noted=100), NOON)
    assert (purse.certain, purse.presumed, purse.used) == (100, 600, 700)
    purse.take_over(key(1), 200)
    assert (purse.presumed, purse.reserved, purse.used) == (400, 200, 700)
    assert (purse.judge(300), purse.judge(301)) == (WAITS, EXHAUSTED)
    standing = purse.standing(301, NOON)
    assert (standing.left, standing.wait_s) == (300, SETTLED_AFTER_S + BILLED_AFTER_S)

    early = BilledSpending(begins=purse.span.begins, calls=150)
    purse.on_billed(early, NOON + SETTLED_AFTER_S - 1)
    assert purse.presumed == 400  # what ran may not be there yet
    purse.on_billed(early, NOON + SETTLED_AFTER_S)
    assert (purse.certain, purse.presumed) == (100, 50)


def test_what_ended_here_lately_is_no_part_of_what_the_ledger_must_have() -> None:
    """So what is presumed never shrinks by it."""
    purse = Purse(budget(1_000), NOON)
    purse.load(Tranche(begins=purse.span.begins, taken=500, noted=0), NOON)
    purse.written(purse.next_tranche(NOON))
    later = NOON + SETTLED_AFTER_S
    purse.reserve(key(1), 10)
    purse.settle(key(1), 7, later)
    purse.on_billed(BilledSpending(begins=purse.span.begins, calls=40), later)
    assert (purse.certain, purse.presumed) == (7, 40)
    purse.on_billed(BilledSpending(begins=purse.span.begins, calls=47), later + BILLED_AFTER_S + 1)
    assert (purse.certain, purse.presumed, purse.used) == (7, 40, 47)


def test_an_end_that_nobody_knows_costs_its_worst_case_until_the_ledger_tells() -> None:
    """It is no false refusal for ever."""
    purse = purse_of(1_000)
    assert admit(purse, 1, 900) is FITS
    purse.settle(key(1), None, NOON)
    assert (purse.used, purse.judge(200)) == (900, EXHAUSTED)
    purse.on_billed(BilledSpending(begins=purse.span.begins, calls=3), NOON + SETTLED_AFTER_S)
    assert purse.used == 3


def test_what_passes_no_admission_leaves_less_for_calls() -> None:
    """Idle containers spend too."""
    purse = purse_of(1_000)
    purse.on_billed(BilledSpending(begins=purse.span.begins, other=950), NOON)
    assert (purse.judge(50), purse.judge(51), purse.spent) == (WAITS, EXHAUSTED, 950)
    purse.on_billed(BilledSpending(begins=purse.span.begins, other=1_000), NOON + 1)
    assert purse.next_tranche(NOON).is_exhausted


def test_what_the_ledger_has_of_calls_without_a_reservation_counts() -> None:
    """They began before there was a budget."""
    purse = purse_of(1_000)
    purse.on_billed(BilledSpending(begins=purse.span.begins, calls=800), NOON)
    assert purse.certain == 800
    purse.on_billed(BilledSpending(begins=0, calls=990), NOON + 1)
    assert purse.certain == 800  # of another period


def test_a_period_ends_and_what_runs_goes_on_in_the_next() -> None:
    """What it costs counts there until the ledger tells which part is of before."""
    purse = purse_of(1_000, period=BudgetPeriod.DAY)
    assert admit(purse, 1, 400) is FITS
    assert admit(purse, 2, 600) is FITS
    purse.settle(key(2), 600, NOON)
    at = purse.span.ends
    purse.follow(purse.budget, at)
    assert (purse.certain, purse.used, purse.judge(600)) == (0, 400, WAITS)
    purse.written(purse.next_tranche(at))
    assert (purse.judge(600), purse.judge(601)) == (FITS, EXHAUSTED)
    purse.settle(key(1), 400, at + 1)
    assert (purse.certain, purse.presumed) == (0, 400)
    purse.on_billed(BilledSpending(begins=purse.span.begins, calls=5), at + 1 + SETTLED_AFTER_S)
    assert purse.used == 5


def test_each_threshold_is_told_once_in_a_period() -> None:
    """A home that takes over tells none again."""
    purse = purse_of(100)
    for number, spent in enumerate((49, 1, 45, 4)):
        purse.reserve(key(number), 50)
        purse.settle(key(number), spent, NOON)
        purse.next_tranche(NOON + number)
    told = purse.next_tranche(NOON + 9)
    assert (told.told, told.told_at) == ((50, 80), (NOON + 1, NOON + 2))

    other = Purse(budget(100), NOON)
    other.load(told, NOON)
    again = other.next_tranche(NOON + 20)
    assert (again.told, again.told_at) == (told.told, told.told_at)
