"""Limits in the metrics."""

from __future__ import annotations

from pilotlight_gateway.limits.limits_home import LimitHomeStatistics
from pilotlight_gateway.metrics.limit_metrics import limit_gauges


def test_every_number_of_the_home_is_shown() -> None:
    """Each under its own name, verdicts as labels."""
    told = LimitHomeStatistics(shards=1, accounts=2, permits=3, settling=4, granted=5, refused=6)

    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for metric in limit_gauges(told)
        for sample in metric.samples
    }

    assert samples == {
        ("pilotlight_limit_shards",): 1,
        ("pilotlight_limit_accounts",): 2,
        ("pilotlight_limit_permits",): 3,
        ("pilotlight_limit_shards_settling",): 4,
        ("pilotlight_limit_asks_total", "granted"): 5,
        ("pilotlight_limit_asks_total", "refused"): 6,
    }
