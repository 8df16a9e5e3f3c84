"""Calls by stage, and what a change makes of them."""

from __future__ import annotations

from pilotlight_gateway.diagnosis.call_samples import (
    changed,
    hurt_part,
    mean_stage,
    mean_total,
    tail_ms,
    tail_stage,
    with_stages,
)
from pilotlight_gateway.diagnosis.diagnosis_window import EXECUTE, QUEUE
from tests.gateway.diagnosis.windows import sample

CALLS = (sample(90.0, queue=10.0, execute=50.0), sample(10.0, queue=500.0, execute=50.0))


def test_means_and_percentiles_count_what_each_call_stands_for() -> None:
    assert mean_stage(CALLS, QUEUE) == 59.0
    assert mean_total(CALLS) == 109.0
    assert tail_ms(CALLS) == 550.0
    assert tail_stage(CALLS, EXECUTE) == 50.0
    assert hurt_part(CALLS, 300.0) == 0.1


def test_a_change_is_made_to_each_call() -> None:
    after = changed(CALLS, lambda stages: with_stages(stages, {QUEUE: 0.0}))

    assert tail_ms(after) == 50.0
    assert [each.weight for each in after] == [90.0, 10.0]


def test_of_no_calls_everything_is_zero() -> None:
    assert (mean_stage((), QUEUE), mean_total(()), tail_ms(()), hurt_part((), 1.0)) == (0.0, 0.0, 0.0, 0.0)
