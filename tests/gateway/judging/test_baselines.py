"""What the old version usually takes."""

from __future__ import annotations

import math
import random

import pytest
from msgspec.structs import replace

from pilotlight_gateway.judging.baselines import MOST_HELD, MOST_STRATA, SETTLED_CALLS, Baselines, line_of
from tests.gateway.judging.compared import compared


def test_a_line_follows_the_size_where_it_says_something() -> None:
    draw = random.Random(1)
    sizes = [math.exp(draw.gauss(7.0, 1.0)) for _ in range(500)]
    amounts = [3.0 * size * math.exp(draw.gauss(0.0, 0.1)) for size in sizes]
    line = line_of(sizes, amounts, 0.95)
    assert (line.slope, line.scale) == pytest.approx((1.0, 0.1), rel=0.1)
    assert line.residual(1_000.0, 3_000.0) == pytest.approx(0.0, abs=0.05)
    assert line.high == pytest.approx(1.645 * 0.1, rel=0.25)
    flat = line_of([1.0] * 100, [5.0] * 100, 0.95)
    assert flat.slope == 0.0
    assert flat.residual(9.0, 5.0) == pytest.approx(0.0)
    assert flat.scale > 0.0


def test_a_stratum_bets_from_fifty_calls_and_settles_with_two_hundred() -> None:
    known, call = Baselines(), compared("control")
    for number in range(SETTLED_CALLS):
        assert (known.of(call) is not None) == (number >= 50)
        known.learn(replace(call, execute_ms=100.0 + number % 7), comparing=True)
    stratum = known.of(call)
    assert stratum is not None
    assert stratum.is_settled
    line = stratum.latency_line
    known.learn(replace(call, execute_ms=9_000.0), comparing=True)
    assert stratum.latency_line is line
    assert known.held == 0


def test_other_devices_and_methods_are_strata_of_their_own_and_bounded() -> None:
    known = Baselines()
    for number in range(MOST_STRATA + 5):
        known.learn(compared("control", gpu_type=f"g{number}"), comparing=False)
    assert len(known.strata) == MOST_STRATA
    assert known.of(compared("control", gpu_type="h100")) is None


def test_what_is_held_is_bounded() -> None:
    known = Baselines()
    for number in range(MOST_HELD + 500):
        known.learn(compared("control", method=f"m{number % 8}"), comparing=False)
    assert known.held <= MOST_HELD


def test_what_has_no_measure_teaches_nothing() -> None:
    known = Baselines()
    known.learn(compared("control", execute_ms=0.0), comparing=False)
    known.learn(compared("control", gpu_ns=0), comparing=False)
    assert known.held == 0
