"""Curves learnt in use."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.observations.curve_learning import (
    FLOOR,
    MEMORY,
    MOST_AT_ONCE,
    MOST_PER_S,
    WRITE_EVERY_S,
    CurveLearner,
    DecayingHistogram,
)
from pilotlight_core.model.api.curve_api import Curve, CurveSource
from pilotlight_core.model.messages.ran import BatchesRan
from tests.example_counts import examples

T4 = ("T4", "whole", False)


def ran(batch: int, *ms: float, count: int = 0, version: str = "ver_1") -> BatchesRan:
    return BatchesRan(container="c", version=version, slice="GPU-1", batch=batch, count=count or len(ms), ms=ms)


def only(told: dict[str, tuple[Curve, ...]]) -> Curve:
    ((curve,),) = told.values()
    return curve


def test_what_few_batches_say_is_not_told() -> None:
    """Not before the floor; then with how many there were."""
    learner = CurveLearner()
    learner.observe(ran(4, *[20.0] * (FLOOR - 1)), T4, 0.0)
    assert learner.due(0.0, 5.0) == {}

    learner.observe(ran(4, 20.0), T4, 0.25)
    curve = only(learner.due(0.25, 5.0))

    assert (curve.gpu, curve.slice, curve.source, curve.software) == ("T4", "whole", CurveSource.LEARNT, False)
    (point,) = curve.points
    assert (point.batch, point.throughput, point.samples, point.at) == (4, 200.0, FLOOR, 5.0)
    assert point.p50_ms == pytest.approx(20.0, rel=0.04)
    assert point.p95_ms == pytest.approx(20.0, rel=0.04)


def test_a_curve_is_written_seldom_and_only_when_it_is_news() -> None:
    """Every half minute at most; a change of some percent is noise."""
    learner = CurveLearner()
    learner.observe(ran(1, *[10.0] * FLOOR), T4, 0.0)
    assert learner.due(0.0, 0.0)
    learner.observe(ran(1, *[50.0] * 500), T4, 1.0)
    assert learner.due(1.0, 1.0) == {}
    later = only(learner.due(WRITE_EVERY_S, 2.0))
    assert later.points[0].throughput < 40.0

    learner.observe(ran(1, *[50.0] * 10), T4, 3.0)
    assert learner.due(3 * WRITE_EVERY_S, 3.0) == {}


def test_the_latest_counts_most() -> None:
    """After several times its memory what was before is forgotten."""
    histogram = DecayingHistogram()
    for _ in range(2_000):
        histogram.add(100.0)
    for _ in range(5 * MEMORY):
        histogram.add(10.0)

    assert histogram.mean == pytest.approx(10.0, rel=0.1)
    assert histogram.quantile(0.95) == pytest.approx(10.0, rel=0.04)


def test_a_sample_stands_for_as_many_as_it_was_taken_of() -> None:
    """Eight durations of four hundred batches weigh as four hundred."""
    learner = CurveLearner()
    learner.observe(ran(1, *[10.0] * 8, count=8), T4, 0.0)
    learner.observe(ran(1, *[30.0] * 8, count=392), T4, 0.0)

    point = only(learner.due(0.0, 0.0)).points[0]

    assert point.samples == 400
    assert point.throughput == pytest.approx(1000 / 29.6, rel=0.03)


def test_a_large_fleet_is_sampled() -> None:
    """The number of durations counted per second is bounded."""
    learner = CurveLearner()
    for number in range(3 * MOST_PER_S):
        learner.observe(ran(1, 10.0), T4, 1.0 + number / (3 * MOST_PER_S))

    looked_at = only(learner.due(2.0, 0.0)).points[0].samples
    assert MOST_PER_S <= looked_at <= MOST_PER_S + MOST_AT_ONCE


def test_whoever_reports_late_in_each_second_is_heard_too() -> None:
    """A hundred nodes report in turn, always in the same, and three times as much as is looked at."""
    learner = CurveLearner()
    for second in range(40):
        for node in range(100):
            for number in range(15):
                learner.observe(ran(number + 1, *[10.0] * 8, version=f"ver_{node}"), T4, second + node / 100)

    told = learner.due(99.0, 0.0, most=1_000)
    assert set(told) == {f"ver_{node}" for node in range(100)}


def test_nonsense_of_a_node_is_not_learnt() -> None:
    """Fewer batches than durations, or none, or a batch of none."""
    learner = CurveLearner()
    for each in (ran(1), ran(0, 5.0), ran(10**9, 5.0), ran(1, 5.0, 5.0, count=1)):
        learner.observe(each, T4, 0.0)

    assert learner.due(0.0, 0.0) == {}


@examples(100)
@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=300), st.floats(0.01, 1.0))
def test_a_quantile_lies_between_the_values_and_rises(values: list[float], part: float) -> None:
    """To within the width of a bucket; whatever the order."""
    histogram = DecayingHistogram()
    for value in values:
        histogram.add(value)

    found = histogram.quantile(part)

    assert min(values) / 1.05 <= found <= max(values) * 1.05
    assert histogram.quantile(min(1.0, part + 0.1)) >= found
    assert min(values) * 0.999 <= histogram.mean <= max(values) * 1.001


def test_memory_is_bounded_and_weights_stay_finite() -> None:
    """A million observations later the histogram is as small as before."""
    luck = random.Random(1)
    histogram = DecayingHistogram()
    for _ in range(30_000):
        histogram.add(luck.lognormvariate(3.0, 0.3), 40.0)

    assert histogram.scale < 1e10
    assert len(histogram.buckets) < 120
    assert histogram.quantile(0.5) == pytest.approx(20.0, rel=0.15)
