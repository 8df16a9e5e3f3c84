"""The hybrid histogram does what its source says."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.policy.prediction.hybrid_histogram import HybridHistogram
from pilotlight_autoscaler.policy.prediction.idle_times import WarmWindow


def test_the_histogram_unloads_and_prewarms() -> None:
    """What comes each hour is there from 54 minutes on; until it is known, for the whole range."""
    policy = HybridHistogram(240)
    assert policy.plan().windows == (WarmWindow(0.0, 240.0),)
    for _ in range(10):
        policy.ended(60.0)
    ((start, end),) = policy.plan().windows
    assert (start, end) == pytest.approx((54.0, 67.1))


def test_the_histogram_expects_the_mean_of_what_is_beyond_it() -> None:
    """With 15 % on both sides."""
    policy = HybridHistogram(60)
    for _ in range(4):
        policy.ended(200.0)
    ((start, end),) = policy.plan().windows
    assert (start, end) == pytest.approx((170.0, 230.0))
