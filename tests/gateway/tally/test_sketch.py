"""Quantiles are right within 2 %, however the values came together."""

from __future__ import annotations

import math
import random

import pytest

from pilotlight_core.model.messages.seeing.tallies import MOST_BUCKETS, SketchCounts
from pilotlight_gateway.tally.sketch import (
    LONGEST_US,
    Sketch,
    bucket_of,
    count_of,
    mean_of,
    middle_of,
    quantile_of,
)

PARTS = (0.05, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0)


def exact(values: list[float], part: float) -> float:
    """The smallest value that has at least the part of all below or at it."""
    return sorted(values)[max(1, math.ceil(part * len(values) - 1e-9)) - 1]


def sketch_of(values: list[float]) -> SketchCounts:
    sketch = Sketch()
    for value in values:
        sketch.add(value)
    return sketch.value()


def test_buckets_follow_each_other_and_hold_what_they_say() -> None:
    """Without a hole, each a bit later than the one before; its middle is within 1/64 of all that is in it."""
    last = -1
    for us in [*range(5_000), *(1 << shift for shift in range(13, 41)), *((1 << shift) - 1 for shift in range(13, 41))]:
        bucket = bucket_of(us)
        if us < 5_000:
            assert bucket in (last, last + 1)
            last = bucket
        assert abs(middle_of(bucket) * 1000 - us) <= max(0.5, us / 64)


@pytest.mark.parametrize("seed", range(4))
def test_quantiles_are_within_two_percent(seed: int) -> None:
    """Of values as calls have: spread over five powers of ten, or all alike."""
    draw = random.Random(seed)
    values = [draw.lognormvariate(draw.choice((0, 3, 6)), 1.2) for _ in range(3_000)] + [17.0] * 500
    found = sketch_of(values)
    assert count_of(found) == len(values)
    assert mean_of(found) == pytest.approx(sum(values) / len(values))
    assert found.most == max(values)
    for part in PARTS:
        assert quantile_of(found, part) == pytest.approx(exact(values, part), rel=0.016, abs=0.0006)


def test_sketches_add_up_in_any_order() -> None:
    """What several gateways saw comes to what one would have seen."""
    draw = random.Random(7)
    values = [draw.expovariate(0.01) for _ in range(2_000)]
    parts = [sketch_of(values[at::4]) for at in range(4)]
    one, other = Sketch(), Sketch()
    for part in parts:
        one.merge(part)
    for part in reversed(parts):
        other.merge(part)
    whole = sketch_of(values)
    for found in (one.value(), other.value()):
        assert (found.buckets, found.counts, found.most) == (whole.buckets, whole.counts, whole.most)


def test_a_sketch_never_grows_beyond_its_bound() -> None:
    """The lowest become one bucket: high quantiles stay right."""
    draw = random.Random(3)
    values = [10 ** draw.uniform(-2, 8) for _ in range(20_000)]
    found = sketch_of(values)
    assert len(found.buckets) == MOST_BUCKETS
    assert count_of(found) == len(values)
    assert quantile_of(found, 0.99) == pytest.approx(exact(values, 0.99), rel=0.02)
    again = Sketch()
    again.merge(found)
    again.merge(sketch_of([value / 3 for value in values]))
    assert len(again.value().buckets) == MOST_BUCKETS


def test_what_is_beyond_all_bounds_counts_as_the_longest() -> None:
    sketch = Sketch()
    sketch.add(1e15)
    assert sketch.value().buckets == (bucket_of(LONGEST_US),)


def test_a_sketch_without_values_says_nothing() -> None:
    empty = Sketch().value()
    assert (quantile_of(empty, 0.5), mean_of(empty)) == (0.0, 0.0)
