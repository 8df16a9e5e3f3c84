"""What is tolerated of live calls."""

from __future__ import annotations

import math
import random

import pytest

from pilotlight_gateway.judging.usual.tolerance import learnt_spread, live_tolerance, tolerated
from pilotlight_gateway.judging.usual.usual_amounts import UsualAmount
from tests.builders.compared import compared_call

USUAL = UsualAmount(4.605, 0.0, 1.5, 0.8)


def test_the_tolerance_is_no_less_than_devices_of_a_type_differ() -> None:
    """max(2 %, 2.6 sqrt(2) spread / sqrt(k)); 5 % until it is learnt; 2 % on the same devices."""
    assert live_tolerance(0.04, devices=1, shared=False) == pytest.approx(0.14708, abs=1e-5)
    assert live_tolerance(0.04, devices=4, shared=False) == pytest.approx(0.07354, abs=1e-5)
    assert live_tolerance(0.001, devices=4, shared=False) == 0.02
    assert live_tolerance(None, devices=4, shared=False) == 0.05
    assert live_tolerance(0.2, devices=1, shared=True) == 0.02


def test_how_far_devices_are_apart_is_learnt_of_containers() -> None:
    """What their means stray by chance is taken off."""
    draw = random.Random(3)
    calls = []
    for number in range(30):
        speed = draw.gauss(0.0, 0.1)
        calls += [
            compared_call(container=f"c{number}", execute_ms=100.0 * 2.718281828 ** draw.gauss(speed, 0.5))
            for _ in range(60)
        ]

    assert learnt_spread(calls, USUAL) == pytest.approx(0.1, abs=0.04)


def test_a_few_containers_say_nothing_of_it() -> None:
    """Three are too few, and so are ones with a few calls."""
    few = [compared_call(container=f"c{number % 3}") for number in range(300)]
    thin = [compared_call(container=f"c{number}") for number in range(300)]

    assert learnt_spread(few, USUAL) is None
    assert learnt_spread(thin, USUAL) is None


def test_no_less_than_a_fifth_of_a_millisecond_is_a_difference() -> None:
    """It matters for short calls alone."""
    assert math.exp(tolerated(0.05, 100.0)) == pytest.approx(1.05)
    assert math.exp(tolerated(0.05, 0.1)) == pytest.approx(3.0)
