"""What calls usually take, by their size."""

from __future__ import annotations

import math
import random

import pytest

from pilotlight_gateway.judging.usual.usual_amounts import size_class_of, size_of, slope_of, usual_amount
from tests.builders.compared import compared_call


def test_the_expected_amount_follows_the_size() -> None:
    """A cost that is the square of its size has the slope 2."""
    sizes = [math.log(number) for number in range(1, 400)]
    usual = usual_amount(sizes, [2.0 * size + 1.0 for size in sizes], 0.99)

    assert usual.slope == pytest.approx(2.0)
    assert usual.residual(math.log(7.0), math.exp(1.0) * 49.0) == pytest.approx(0.0, abs=1e-9)
    assert usual.spread == pytest.approx(0.03)


def test_a_size_that_says_nothing_is_not_looked_at() -> None:
    """Below a correlation of 0.2 the line is flat; so it is where all sizes are one."""
    draw = random.Random(5)
    sizes = [draw.gauss(0.0, 1.0) for _ in range(500)]
    assert slope_of(sizes, [draw.gauss(0.0, 1.0) for _ in sizes]) == 0.0
    assert slope_of([3.0] * 9, [float(number) for number in range(9)]) == 0.0


def test_what_is_high_is_a_quantile_of_the_distances() -> None:
    """Of lognormal times with the standard deviation 0.5, p95 is 0.82 above the median's logarithm."""
    draw = random.Random(6)
    logs = [draw.gauss(4.6, 0.5) for _ in range(4_000)]
    usual = usual_amount([0.0] * len(logs), logs, 0.95)

    assert usual.high == pytest.approx(0.822, abs=0.05)
    assert usual.spread == pytest.approx(1.5, abs=0.08)


def test_a_declared_cost_is_the_size_and_else_the_body_is() -> None:
    """Sizes are in classes of doublings; no number of a caller is too large."""
    assert size_of(compared_call(cost=99.0, body_bytes=5)) == pytest.approx(math.log(100.0))
    assert size_of(compared_call(body_bytes=99)) == pytest.approx(math.log(100.0))
    assert size_class_of(math.log(128.5)) == 7
    assert math.isfinite(size_of(compared_call(cost=math.inf)))
