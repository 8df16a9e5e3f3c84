"""Whole runs on a small trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.openb.run import LEVELS, POLICIES, Run, curve, run
from tests.benchmarks.openb.makers import tiny


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_fills_the_fleet(tmp_path: Path, policy: str) -> None:
    """What is allocated rises with demand, never beyond the fleet, and a seed gives the same run again."""
    trace = tiny(tmp_path)
    found, again = run(trace, policy, 42), run(trace, policy, 42)
    seen = found.curve[~np.isnan(found.curve)]
    assert np.array_equal(found.curve, again.curve, equal_nan=True)
    assert (np.diff(seen) >= 0).all()
    assert 50 < found.allocated <= 100
    assert found.refused >= 0


def test_a_curve_is_the_mean_at_each_percent() -> None:
    """Arrivals at 1.4 and 0.6 fall on 1 %; where none fell, the neighbours count; far off there is nothing."""
    found = curve(np.array([0.6, 1.4, 2.6]), np.array([0.5, 1.0, 2.0]))
    assert len(found) == LEVELS
    assert found[1] == pytest.approx(0.75)
    assert found[2] == pytest.approx(round((0.5 + 1.0 + 2.0) / 3, 2))
    assert found[3] == pytest.approx(2.0)
    assert np.isnan(found[10])


def test_a_small_fleet_counts_what_was_given_away_before_it_was_full() -> None:
    """No arrival falls on 100 percent: the last one before it counts."""
    made = curve(np.array([40.0, 80.0, 120.0]), np.array([40.0, 80.0, 80.0]))

    assert Run(trace="t", policy="ours", seed=1, curve=made, refused=0).allocated == 80.0
    assert Run(trace="t", policy="ours", seed=1, curve=np.full(LEVELS, np.nan), refused=0).allocated == 0.0
