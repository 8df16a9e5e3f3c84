"""Warming in vain is bounded, and what is used earns more."""

from __future__ import annotations

from pilotlight_autoscaler.policy.prediction.prewarm_budget import DAY_MINUTES, FIRST, LEAST, MOST, PrewarmBudget


def prewarm(budget: PrewarmBudget, *, used: bool) -> None:
    """One that lasts for two minutes, and a call in the one after it or none."""
    for prewarmed, needed in ((1, 0), (1, 0), (0, int(used))):
        budget.observe(prewarmed, needed)


def test_a_prewarm_that_nobody_used_halves_the_budget() -> None:
    """Down to one a day."""
    budget = PrewarmBudget()
    prewarm(budget, used=False)
    assert budget.per_day == FIRST // 2
    for _ in range(10):
        prewarm(budget, used=False)
    assert budget.per_day == LEAST


def test_one_that_was_used_doubles_it() -> None:
    """Up to a bound."""
    budget = PrewarmBudget(2)
    prewarm(budget, used=True)
    assert budget.per_day == 4
    for _ in range(10):
        prewarm(budget, used=True)
    assert budget.per_day == MOST


def test_without_a_budget_none_is_warmed_until_the_next_day() -> None:
    """One that goes on may go on."""
    budget = PrewarmBudget(1)
    budget.observe(1, 0)
    assert budget.allowed(3) == 3
    budget.observe(0, 0)
    assert budget.allowed(3) == 0
    for _ in range(DAY_MINUTES):
        budget.observe(0, 0)
    assert budget.allowed(3) == 3
