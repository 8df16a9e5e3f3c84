"""The benchmark of the judge: its traffic is as calibrated, and a run goes through the judge."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rollout_traffic import SAME, Regression, Traffic, TrafficRun, rhos, shadow_pairs
from benchmarks.rollouts import NEVER, Task, rolled_back_after, rolled_back_after_pairs, upper_bound
from pilotlight_core.model.rollouts.rollout_record import Arm


def test_traffic_is_as_calibrated() -> None:
    """Medians, spreads, the part of the canary, and a size that says what a call costs."""
    traffic = Traffic(rho=0.1, known=0.9, errors=0.05)
    calls = list(TrafficRun(traffic, SAME, 4_000, np.random.default_rng(1)).compared())
    times, costs = np.log([call.execute_ms for call in calls]), np.log([call.gpu_ns for call in calls])

    assert np.mean([call.arm == Arm.CANARY for call in calls]) == pytest.approx(0.1, abs=0.02)
    assert np.std(times) == pytest.approx(0.5, abs=0.03)
    assert np.std(costs) == pytest.approx(0.6, abs=0.03)
    assert np.corrcoef(np.log([call.cost for call in calls]), costs)[0, 1] ** 2 == pytest.approx(0.9, abs=0.02)
    assert np.mean([bool(call.code) for call in calls]) == pytest.approx(0.05, abs=0.02)


def test_a_ramp_rises_by_its_steps() -> None:
    """Each call has the probability of its step."""
    assert list(rhos(Traffic(rho=0.0), 10_000)[::2_000]) == [0.01, 0.05, 0.1, 0.25, 0.5]


def test_pairs_stray_by_their_noise() -> None:
    """Around the planted ratio, and the larger side does not come first more often."""
    calls = list(shadow_pairs(0.05, 1.1, 1_000, np.random.default_rng(2)))
    costs = {arm: np.log([call.gpu_ns for call in calls if call.arm == arm]) for arm in (Arm.CANARY, Arm.TWIN)}
    ratios = costs[Arm.CANARY] - costs[Arm.TWIN]

    assert np.mean(ratios) == pytest.approx(np.log(1.1), abs=0.01)
    assert np.std(ratios) == pytest.approx(0.05, abs=0.005)
    assert 400 < sum(call.arm == Arm.CANARY for call in calls[::2]) < 600


def test_a_run_goes_through_the_judge() -> None:
    """A version of which every call fails is found at once, and an equal one is left alone."""
    assert rolled_back_after(Task(Traffic(), Regression(errors=1.0), 400, (1,))) < 20
    assert rolled_back_after(Task(Traffic(), SAME, 400, (1,))) == NEVER
    assert rolled_back_after_pairs(0.02, 1.1, 100, (1,)) < 60


def test_a_rate_has_an_upper_bound() -> None:
    """None of 300: at most one of a hundred."""
    assert upper_bound(0, 300) == pytest.approx(0.00994, abs=1e-4)
    assert upper_bound(3, 300) == pytest.approx(0.0256, abs=1e-3)
