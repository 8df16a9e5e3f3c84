"""The bet against the split."""

from __future__ import annotations

import math
import random

import pytest

from pilotlight_gateway.judging.guards.sample_ratio import SEGMENTS, SampleRatio


def test_it_is_the_ratio_of_beta_functions() -> None:
    """B(100 rho + n1, 100 (1 - rho) + n0) / B(100 rho, 100 (1 - rho)) / rho^n1 / (1 - rho)^n0."""
    guard = SampleRatio()
    for canary in [True] * 7 + [False] * 13:
        guard.note(canary=canary, rho=0.1)

    log = beta(10 + 7, 90 + 13) - beta(10, 90) - 7 * math.log(0.1) - 13 * math.log(0.9)
    assert guard.e == pytest.approx(math.exp(log))


def beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def test_a_right_split_is_seldom_called_wrong_and_a_wrong_one_is_found() -> None:
    """12 % instead of 10 %."""
    assert sum(alarmed(0.1, 3_000, seed) for seed in range(60)) <= 2
    assert sum(alarmed(0.12, 8_000, seed) for seed in range(10)) >= 8


def alarmed(truth: float, calls: int, seed: int) -> bool:
    guard, draw = SampleRatio(), random.Random(seed)
    for _ in range(calls):
        guard.note(canary=draw.random() < truth, rho=0.1)
        if guard.e >= 100.0:
            return True
    return False


def test_each_share_has_its_own_counts_and_they_are_bounded() -> None:
    """A ramp of any number of shares is watched."""
    guard = SampleRatio()
    for number in range(SEGMENTS + 10):
        guard.note(canary=False, rho=(number + 1) / 1_000)

    assert len(guard.counts) == SEGMENTS
    assert guard.counts[0.074] == [0, 1]
