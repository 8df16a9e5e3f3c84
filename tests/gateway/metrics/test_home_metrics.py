"""What the homes of a gateway show."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.home.home import HomeStatistics
from pilotlight_gateway.home.home_report import BreakerCounts
from pilotlight_gateway.home.slowdown import SlowFlow
from pilotlight_gateway.metrics.home_metrics import home_gauges


def statistics(**more: Any) -> HomeStatistics:
    fields: dict[str, Any] = {"queued": 0, "granted": 0, "containers": 0, "versions": 0, "deposed": 0}
    return HomeStatistics(oldest_ms=0.0, **fields, **more)


def test_homes_are_shown_together() -> None:
    """Sums of what is counted, the largest of what is compared; nothing names a tenant."""
    slow = SlowFlow(
        version="v", function="f", tenant="mouse", priority="batch", slowdown=9.0, calls=50, neighbour="elephant"
    )
    homes = [
        statistics(shed={0: 3}, breakers=BreakerCounts(versions=1), slowdown={"batch": 9.0}, slow=(slow,)),
        statistics(
            shed={0: 2, 1: 1}, breakers=BreakerCounts(tenants=3, containers=2), slowdown={"batch": 2.0, "standard": 1.5}
        ),
    ]
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for metric in home_gauges(homes)
        for sample in metric.samples
    }
    assert found == {
        ("pilotlight_calls_shed_total", "0"): 5.0,
        ("pilotlight_calls_shed_total", "1"): 1.0,
        ("pilotlight_breakers_open", "version"): 1.0,
        ("pilotlight_breakers_open", "tenant"): 3.0,
        ("pilotlight_breakers_open", "container"): 2.0,
        ("pilotlight_slowdown_max", "batch"): 9.0,
        ("pilotlight_slowdown_max", "standard"): 1.5,
        ("pilotlight_slow_flows",): 1.0,
    }
