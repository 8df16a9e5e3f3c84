"""The benchmark of shadows: its figures are those of all calls together, and its error that of turns."""

from __future__ import annotations

import pytest

from benchmarks.shadows import Turn, error_of, figures_of


def turn(*took: float, pairs: int = 0, gateway_s: float = 0.0) -> Turn:
    return Turn(took=took, pairs=pairs, gateway_s=gateway_s)


def test_figures_are_of_all_calls_together() -> None:
    """And what the gateway has used more is shared among the pairs."""
    shadowed = [turn(10.0, 20.0, pairs=1, gateway_s=0.3), turn(30.0, 40.0, pairs=1, gateway_s=0.3)]
    plain = [turn(10.0, 20.0, gateway_s=0.1), turn(10.0, 20.0, gateway_s=0.1)]
    figures = figures_of(shadowed, plain)
    assert figures["shadow_p50_ratio"] == pytest.approx(25.0 / 15.0)
    assert figures["repeated"] == 0.5
    assert figures["gateway_us_pair"] == pytest.approx(2e5)
    assert figures["same_p99_ratio"] == 1.0


def test_turns_that_are_alike_have_no_error() -> None:
    """Those that differ have one."""
    alike = [turn(10.0, 20.0)] * 4
    assert error_of(alike, alike, 99.0) == 0.0
    assert error_of([turn(10.0), turn(20.0), turn(30.0), turn(40.0)], [turn(10.0)] * 4, 50.0) > 0.2
