"""What hypotheses ask of a window."""

from __future__ import annotations

import math

from pilotlight_gateway.diagnosis.diagnosis_case import case_of
from pilotlight_gateway.diagnosis.diagnosis_window import BatchTimes
from pilotlight_gateway.diagnosis.suspects import CallTrouble
from tests.gateway.diagnosis.windows import calls, sample, window


def test_a_batcher_that_is_always_busy_may_be_far_from_its_limit() -> None:
    """Busy time is no utilisation: small batches keep it busy, too."""
    case = case_of(
        window(
            calls(execute=24.0), is_batched=True, batch_most=32, slots=64, containers=1.0, busy_s=99.0,
            batches=(BatchTimes(2, 200, 22.0), BatchTimes(4, 150, 24.0)),
        )
    )  # fmt: skip

    assert case.busy > 0.95
    assert case.rho < 0.02 * 52.0 / 32 * 32


def test_calls_that_found_no_room_are_asked_for_and_those_that_were_limited_are_not() -> None:
    case = case_of(window(arrivals=3_000, failed={"queue_full": 500, "rate_limited": 1_500}))

    assert case.offered == 15.0
    assert case.severity == {CallTrouble.LIMITED: 0.5, CallTrouble.FULL: 500 / 3_000}


def test_more_containers_shorten_a_wait_and_nothing_else() -> None:
    case = case_of(window(calls(queue=900.0, execute=95.0), containers=1.0))
    after = case.with_containers(4)(case.samples[0].stages)

    assert sum(after) < sum(case.samples[0].stages)
    assert case.with_containers(4)(sample(execute=95.0).stages) == sample(execute=95.0).stages


def test_a_gain_is_the_part_of_the_excess_that_goes() -> None:
    case = case_of(window(calls(queue=900.0, execute=95.0), containers=1.0))
    then, gains = case.after(lambda stages: tuple(0.5 * ms for ms in stages))

    assert math.isclose(then, case.tail_ms / 2)
    assert math.isclose(gains[CallTrouble.SLOW], (case.tail_ms / 2) / (case.tail_ms - 300.0))


def test_waiting_for_a_processor_now_and_then_is_no_work_of_it() -> None:
    assert case_of(window(guest_cpu_s=2.0, throttled_s=30.0)).cpu_part == 0.0
    assert case_of(window(guest_cpu_s=20.0, throttled_s=20.0)).cpu_part > 0.7


def test_a_few_errors_may_be_chance() -> None:
    assert case_of(window(arrivals=1_003, failed={"queue_full": 3})).severity == {}


def test_so_many_examples_are_enough() -> None:
    assert len(case_of(window(tuple(sample(1.0, execute=50.0) for _ in range(9_000)))).samples) == 3_000
