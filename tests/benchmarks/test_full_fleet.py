"""The benchmark of a full fleet: its ratios are those of all calls of each kind together."""

from __future__ import annotations

import pytest

from benchmarks.full_fleet import figures_of
from benchmarks.shadows import Turn


def turn(*took: float) -> Turn:
    return Turn(took=took, pairs=0, gateway_s=0.0)


def test_ratios_are_of_all_calls_of_a_kind() -> None:
    """Turns without a rollout that are alike differ by nothing from each other."""
    figures = figures_of([turn(21.0, 21.0)] * 2, [turn(20.0, 20.0)] * 2)
    assert figures["held_p95_ratio"] == pytest.approx(1.05)
    assert figures["held_p95_error"] == pytest.approx(0.0, abs=1e-9)
    assert (figures["same_p95_ratio"], figures["calls"]) == (1.0, 4.0)
