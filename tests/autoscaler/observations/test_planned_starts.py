"""What homes tell of jobs whose time comes: what is known of it, and for how long."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.observations import planned_starts
from pilotlight_autoscaler.observations.planned_starts import LOOK_EVERY_S, STALE_S, PlannedJobStarts
from pilotlight_autoscaler.policy.function_view import PLANNED_MARGIN_S, PlannedCalls
from pilotlight_core.model.messages.job_messages import JobsDue, PlannedStarts

NAME = "acme:shop.greet"


def told(*functions: str, due_in_s: float = 30.0, jobs: int = 4) -> PlannedStarts:
    return PlannedStarts(items=tuple(JobsDue(name, due_in_s * 1_000.0, jobs) for name in functions))


def test_what_was_told_is_known_until_it_is_not_told_again() -> None:
    """The time until then goes down meanwhile."""
    planned = PlannedJobStarts()
    assert planned.of(NAME, 100.0) is None
    planned.on_told(told(NAME), 100.0)
    assert planned.of(NAME, 101.0) == PlannedCalls(due_in_s=29.0, calls=4)
    assert planned.of(NAME, 100.5 + STALE_S) is None

    planned.forget(100.0 + STALE_S)
    assert len(planned) == 1
    planned.forget(100.5 + STALE_S)
    assert len(planned) == 0


def test_a_function_is_due_as_early_as_its_start_takes() -> None:
    """And a little earlier."""
    planned = PlannedJobStarts()
    planned.on_told(told(NAME, "acme:shop.other"), 100.0)
    loads = {NAME: 28.5 - PLANNED_MARGIN_S, "acme:shop.other": 1.0}
    assert planned.soon(loads.__getitem__, 101.5 - LOOK_EVERY_S) == []
    assert planned.soon(loads.__getitem__, 101.5) == [NAME]


def test_homes_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those known already are kept up."""
    monkeypatch.setattr(planned_starts, "MOST_FUNCTIONS", 1)
    planned = PlannedJobStarts()
    planned.on_told(told(NAME, "acme:shop.other"), 100.0)
    planned.on_told(told(NAME, due_in_s=9.0), 101.0)
    assert len(planned) == 1
    assert planned.of(NAME, 101.0) == PlannedCalls(due_in_s=9.0, calls=4)
