"""How many containers may be moved in an hour."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.policy.move_budget import HOUR_S, MoveBudget


def test_what_is_spent_comes_back_after_an_hour() -> None:
    """Move by move; until then the refusal says when."""
    budget = MoveBudget(per_hour=2)
    budget.spend(0.0)
    assert (budget.left(60.0), budget.refusal_for(60.0, "acme")) == (1, "")
    budget.spend(60.0)

    assert budget.left(600.0) == 0
    assert budget.refusal_for(600.0) == (
        "2 containers were moved in the last hour, which is as many as may be (--moves-per-hour): "
        "the next may be in 50 min"
    )
    assert budget.left(HOUR_S) == 1
    assert budget.left(HOUR_S + 60.0) == 2


def test_nobody_uses_it_up() -> None:
    """Whoever has had as many as are left for all waits; others do not."""
    budget = MoveBudget(per_hour=8)
    had = 0
    while budget.allows(0.0, "greedy"):
        budget.spend(0.0, "greedy")
        had += 1

    assert (had, budget.left(0.0)) == (4, 4)
    assert budget.allows(0.0, "acme")
    assert budget.allows(0.0, "")
    assert budget.refusal_for(60.0, "greedy") == (
        "4 containers were moved for greedy in the last hour, and the 4 that may be moved still "
        "(--moves-per-hour) are for others: the next may be in 59 min"
    )
    assert budget.allows(HOUR_S, "greedy")


def test_none_at_all() -> None:
    """0 switches moving off."""
    assert MoveBudget(per_hour=0).left(0.0) == 0
    assert "are not moved" in MoveBudget(per_hour=0).refusal_for(0.0)


@given(st.integers(0, 5), st.lists(st.floats(0, 1000), max_size=60))
def test_no_hour_sees_more(per_hour: int, gaps: list[float]) -> None:
    """Whoever spends only what is left never spends more than so many within any hour."""
    budget, at, spent = MoveBudget(per_hour=per_hour), 0.0, []
    for gap in gaps:
        at += gap
        if budget.left(at):
            budget.spend(at)
            spent.append(at)

    assert all(later - earlier >= HOUR_S for earlier, later in zip(spent, spent[per_hour:], strict=False))
    assert all(a <= b for a, b in pairwise(spent))
