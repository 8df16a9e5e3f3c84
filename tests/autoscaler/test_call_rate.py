"""Rates of calls, from counts."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.call_rate import CallRate


def test_a_steady_rate_is_found_within_seconds() -> None:
    """25 calls each 250 ms are 100 a second."""
    rate = CallRate()
    for number in range(40):
        rate = rate.after(25, number * 0.25)

    assert rate.value == pytest.approx(100.0, rel=0.02)


def test_what_comes_after_a_pause_came_at_its_end() -> None:
    """One call after an idle hour is no rate of one an hour, nor what was before."""
    rate = CallRate(value=500.0, at=0.0).after(10, 3600.0)

    assert rate.value == pytest.approx(10 * (1 - 2.718281828**-0.5), rel=0.01)
