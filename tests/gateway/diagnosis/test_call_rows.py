from __future__ import annotations

import random

from pilotlight_gateway.diagnosis.call_rows import ExampleCall, calibrated
from pilotlight_gateway.diagnosis.call_samples import tail_ms


def row(ms: float) -> ExampleCall:
    return ExampleCall((ms,))


def test_examples_stand_for_the_calls_that_took_about_as_long() -> None:
    found = calibrated([row(10.0), row(100.0)], [(9.0, 50.0), (11.0, 30.0), (90.0, 20.0)])

    assert [(each.stages, each.weight) for each in found] == [((10.0,), 80.0), ((100.0,), 20.0)]


def test_the_tail_of_few_examples_is_that_of_all_calls() -> None:
    """192 examples of 20,000 calls whose durations are skewed: the slowest ones are all among them."""
    chance = random.Random(4)
    durations = [chance.lognormvariate(3.0, 1.0) for _ in range(20_000)]
    kept = chance.sample(durations, 160) + sorted(durations)[-32:]
    found = calibrated([row(ms) for ms in kept], [(ms, 1.0) for ms in durations])

    truth = sorted(durations)[int(0.95 * 20_000)]
    assert abs(tail_ms(found) - truth) < 0.1 * truth
    assert round(sum(each.weight for each in found)) == 20_000


def test_no_examples_are_no_calls() -> None:
    assert calibrated([], [(10.0, 5.0)]) == ()
