"""The load of a gateway over the last half minute."""

from __future__ import annotations

import pytest

from pilotlight_core.host.metrics.histogram import Histogram
from pilotlight_gateway.metrics.load_meter import SAMPLE_EVERY_S, SAMPLES, LoadMeter

BOUNDS = (0.001, 0.01, 0.1)


def test_a_rate_is_the_mean_of_the_last_half_minute() -> None:
    """What came before does not count: a pause is seen when it has lasted."""
    meter, lags = LoadMeter(), Histogram(BOUNDS)
    assert meter.sample(0.0, 500, lags) == (0.0, 0.0)
    assert meter.sample(2.0, 600, lags)[0] == pytest.approx(50.0)
    rates = [meter.sample(2.0 + SAMPLE_EVERY_S * n, 600, lags)[0] for n in range(1, SAMPLES)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == 0.0


def test_a_lag_is_that_of_ninety_nine_in_a_hundred() -> None:
    """As a bucket's bound; one bad callback of a hundred is not shown, two are; the worst has no bound."""
    meter, lags = LoadMeter(), Histogram(BOUNDS)
    lags.observe(60.0)  # long before
    meter.sample(0.0, 0, lags)
    for _ in range(98):
        lags.observe(0.0005)
    assert meter.sample(1.0, 0, lags)[1] == 0.001
    lags.observe(0.05)
    assert meter.sample(2.0, 0, lags)[1] == 0.1
    for _ in range(5):
        lags.observe(60.0)
    assert meter.sample(3.0, 0, lags)[1] == 0.1


def test_a_clock_that_stands_still_makes_no_rate() -> None:
    meter, lags = LoadMeter(), Histogram(BOUNDS)
    meter.sample(1.0, 0, lags)
    assert meter.sample(1.0, 5, lags)[0] == 0.0
