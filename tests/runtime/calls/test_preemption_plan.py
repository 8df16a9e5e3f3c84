"""Which calls end early when their node is taken away."""

from __future__ import annotations

import pytest

from pilotlight_runtime.calls.preemption_plan import PreemptionPlan


@pytest.mark.parametrize(
    ("remaining_s", "may_rerun", "has_sent", "ends"),
    [
        (50.0, True, False, False),  # it fits
        (70.0, True, False, True),  # it does not, and runs elsewhere from its start
        (70.0, False, False, False),  # it must not run again: it has all the time there is
        (70.0, True, True, False),  # a part of its stream is with its caller
    ],
)
def test_only_what_is_run_again_ends_at_once(remaining_s: float, may_rerun: bool, has_sent: bool, ends: bool) -> None:
    """Whoever cannot run again loses nothing by going on until the end."""
    plan = PreemptionPlan(until_at=100.0, reason="")

    assert plan.ends_call(40.0, remaining_s=remaining_s, may_rerun=may_rerun, has_sent=has_sent) is ends


def test_at_the_end_all_calls_end() -> None:
    """Whatever they are."""
    plan = PreemptionPlan(until_at=100.0, reason="", hooks_until_at=200.0)
    for flag in (True, False):
        assert plan.ends_call(100.0, remaining_s=0.0, may_rerun=flag, has_sent=not flag)


def test_nothing_ends_early_while_drain_hooks_run() -> None:
    """They may have it end by itself."""
    plan = PreemptionPlan(until_at=100.0, reason="", hooks_until_at=50.0)

    assert not plan.ends_call(49.0, remaining_s=99.0, may_rerun=True, has_sent=False)
    assert plan.ends_call(50.0, remaining_s=99.0, may_rerun=True, has_sent=False)
