"""Prepaid credits: which grant pays, what lapses, and that nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.money.credits import CreditChange, CreditGrant, draw, lumped, prepaid_amount
from tests.example_counts import examples

DAYS = [f"2026-11-{day:02}" for day in range(1, 11)]


def grant(name: str, amount: int, begins: str = DAYS[0], ends: str = "", priority: int = 0) -> CreditGrant:
    return CreditGrant(id=name, amount=amount, begins=begins, ends=ends, priority=priority)


def test_grants_pay_by_priority_then_by_their_end() -> None:
    """And what is left at its end lapses."""
    grants = [grant("last", 100, priority=1), grant("never", 50), grant("soon", 30, ends=DAYS[3])]
    account = draw(grants, [(DAYS[1], 20), (DAYS[4], 60)], DAYS[9])
    assert account.left == {"last": 90, "never": 0, "soon": 0}
    assert [(line.day, line.change, line.grant, line.amount, line.balance) for line in account.lines[3:]] == [
        (DAYS[1], "spent", "soon", 20, 160),
        (DAYS[3], "lapsed", "soon", 10, 150),
        (DAYS[4], "spent", "never", 50, 100),
        (DAYS[4], "spent", "last", 10, 90),
    ]
    assert (account.lapsed, account.owed, account.balance) == (10, 0, 90)


def test_what_nothing_covers_is_owed_and_the_next_grant_pays_it() -> None:
    """What was spent before the first grant is nobody's concern here."""
    grants = [grant("first", 10, begins=DAYS[1]), grant("second", 100, begins=DAYS[5])]
    account = draw(grants, [(DAYS[0], 99), (DAYS[2], 25), (DAYS[6], 5)], DAYS[9])
    assert [(line.change, line.grant, line.amount, line.balance) for line in account.lines] == [
        ("granted", "first", 10, 10),
        ("spent", "first", 10, 0),
        ("owed", "", 15, -15),
        ("granted", "second", 100, 85),
        ("paid", "second", 15, 85),
        ("spent", "second", 5, 80),
    ]


@pytest.mark.parametrize("until", [DAYS[2], DAYS[9]])
def test_what_is_ended_on_the_day_on_which_it_was_given_lapses(until: str) -> None:
    """Nothing is spent of it; what was owed it has paid."""
    grants = [grant("first", 10, begins=DAYS[0]), grant("wrong", 500, begins=DAYS[2], ends=DAYS[2])]
    account = draw(grants, [(DAYS[1], 15), (DAYS[2], 7)], until)
    assert [(line.change, line.grant, line.amount, line.balance) for line in account.lines[3:]] == [
        ("granted", "wrong", 500, 495),
        ("paid", "wrong", 5, 495),
        ("lapsed", "wrong", 495, 0),
        ("owed", "", 7, -7),
    ]
    assert (account.left["wrong"], account.balance) == (0, -7)


def test_grants_of_one_day_pay_as_they_were_given() -> None:
    """Whatever their names are."""
    account = draw([grant("zz", 10), grant("aa", 10)], [(DAYS[0], 5), (DAYS[1], 6)], DAYS[9])
    assert account.left == {"zz": 0, "aa": 9}


@given(
    grants=st.lists(
        st.tuples(st.integers(1, 100), st.sampled_from(DAYS), st.sampled_from(["", *DAYS]), st.integers(-1, 1)),
        max_size=6,
    ),
    spent=st.lists(st.tuples(st.sampled_from(DAYS), st.integers(0, 60)), max_size=8),
)
@examples(200)
def test_nothing_is_lost(grants: list[tuple[int, str, str, int]], spent: list[tuple[str, int]]) -> None:
    """What was granted is spent, has lapsed, or is left; what was spent was covered or is owed."""
    made = [grant(f"g{number}", *one) for number, one in enumerate(grants)]
    account = draw(made, spent, DAYS[-1])
    sums = {change: sum(line.amount for line in account.lines if line.change is change) for change in CreditChange}
    first = min((one.begins for one in made), default="9999")
    cost = sum(amount for day, amount in spent if day >= first)
    covered = sums[CreditChange.SPENT] + sums[CreditChange.PAID]
    assert covered + account.lapsed + sum(account.left.values()) == sum(one.amount for one in made)
    assert sums[CreditChange.SPENT] + sums[CreditChange.OWED] == cost
    assert sums[CreditChange.OWED] - sums[CreditChange.PAID] == account.owed
    assert all(left >= 0 for left in account.left.values())
    if account.lines:
        assert account.lines[-1].balance == account.balance
    assert prepaid_amount(made, spent, DAYS[-1]) - sum(amount for _, amount in spent) == account.balance


def test_what_is_given_back_leaves_no_amount_below_nothing() -> None:
    """A budget below 0 could not be read again."""
    assert prepaid_amount([], [("2026-11-19", 0), ("2026-11-20", -1)], "2026-11-20") == 0


@given(
    grants=st.lists(st.tuples(st.integers(1, 100), st.sampled_from(DAYS), st.sampled_from(["", *DAYS])), max_size=3),
    spent=st.lists(st.tuples(st.sampled_from(DAYS), st.integers(-20, 60)), max_size=12),
    until=st.sampled_from(DAYS),
)
@examples(200)
def test_lumps_draw_as_days_do(grants: list[tuple[int, str, str]], spent: list[tuple[str, int]], until: str) -> None:
    """Whatever is given back among them, and there are no more of them than grants begin and end."""
    made = [grant(f"g{number}", *one) for number, one in enumerate(grants)]
    spent = [one for one in spent if one[0] <= until]
    lumps = lumped(made, spent)
    whole, same = draw(made, spent, until), draw(made, lumps, until)
    assert (whole.left, whole.owed, whole.lapsed) == (same.left, same.owed, same.lapsed)
    assert prepaid_amount(made, lumps, until) == prepaid_amount(made, spent, until)
    given_back = sum(amount < 0 for _, amount in spent)
    assert len(lumps) <= (2 * len(made) + 1) * (1 + 2 * given_back)
