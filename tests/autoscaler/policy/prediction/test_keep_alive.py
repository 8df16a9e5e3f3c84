"""Plans of when a container is there, and what they cost."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.policy.prediction.idle_times import WarmWindow
from pilotlight_autoscaler.policy.prediction.keep_alive import KeepAlivePlan

PLAN = KeepAlivePlan((WarmWindow(0.0, 2.0), WarmWindow(9.0, 11.0)))


@pytest.mark.parametrize(
    ("minutes", "covered", "idle"),
    [(0.5, True, 0.5), (2.0, True, 2.0), (5.0, False, 2.0), (9.0, True, 2.0), (10.0, True, 3.0), (60.0, False, 4.0)],
)
def test_a_call_finds_a_container_in_a_window(minutes: float, covered: bool, idle: float) -> None:
    """And what was idle until then was idle in windows alone."""
    assert (PLAN.covers(minutes), PLAN.idle_minutes(minutes)) == (covered, idle)


def test_no_window_costs_nothing() -> None:
    """And covers nothing."""
    assert (KeepAlivePlan(()).covers(1.0), KeepAlivePlan(()).idle_minutes(1.0)) == (False, 0.0)
