"""How many nodes may go at a time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pilotlight_autoscaler.policy.nodes.disruption import may_go
from pilotlight_core.model.api.pools.pool_terms import DisruptionBudget, DisruptionReason

NOON = datetime(2026, 11, 20, 12, 30, tzinfo=UTC).timestamp()
EMPTY, DRIFTED = DisruptionReason.EMPTY, DisruptionReason.DRIFTED


@pytest.mark.parametrize(
    ("nodes", "there", "going", "allowed"),
    [("10%", 20, 0, 2), ("10%", 3, 0, 1), ("10%", 3, 1, 0), ("2", 20, 0, 2), ("2", 20, 5, 0), ("0", 20, 0, 0)],
)
def test_a_budget_is_a_number_or_a_part(nodes: str, there: int, going: int, allowed: int) -> None:
    """A part is rounded up, and those that go already count."""
    assert may_go((DisruptionBudget(nodes=nodes),), EMPTY, nodes=there, going=going, at=NOON) == allowed


def test_the_strictest_that_holds_counts() -> None:
    """One for other reasons does not hold; without any, all may go."""
    budgets = (DisruptionBudget(nodes="5"), DisruptionBudget(nodes="1", reasons=(DRIFTED,)))
    assert may_go(budgets, EMPTY, nodes=9, going=0, at=NOON) == 5
    assert may_go(budgets, DRIFTED, nodes=9, going=0, at=NOON) == 1
    assert may_go((), EMPTY, nodes=9, going=2, at=NOON) == 7


def test_a_budget_with_a_schedule_holds_from_its_tick_on() -> None:
    """In UTC, for its duration: none go between nine and five on a Friday."""
    office = DisruptionBudget(nodes="0", schedule="0 9 * * 1-5", duration_s=8 * 3600.0)
    assert may_go((office,), EMPTY, nodes=9, going=0, at=NOON) == 0
    assert may_go((office,), EMPTY, nodes=9, going=0, at=NOON + 6 * 3600.0) == 9
    assert may_go((office,), EMPTY, nodes=9, going=0, at=NOON + 24 * 3600.0) == 9
