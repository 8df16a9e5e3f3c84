"""Metrics of pools."""

from __future__ import annotations

from pilotlight_autoscaler.pools.pool_counts import PoolCounts
from pilotlight_core.model.records.pools import LaunchState
from tests.builders.pools import launch, pool


def values(counts: PoolCounts) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in counts.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_pools_are_measured_and_what_was_done_is_counted() -> None:
    """A pool that is gone is not shown any more."""
    counts = PoolCounts()
    counts.launched("l4")
    counts.arrived("l4", 40.0)
    counts.failed("l4", "no_capacity")
    counts.measured([launch(1), launch(2, state=LaunchState.LAUNCHING)], {"l4": pool()})
    found = values(counts)
    assert found["pilotlight_pool_nodes", "l4", "up"] == found["pilotlight_pool_nodes", "l4", "launching"] == 1
    assert found["pilotlight_pool_usd_per_hour", "l4"] == 2.0
    assert found["pilotlight_pool_launches_total", "l4"] == found["pilotlight_pool_arrivals_total", "l4"] == 1
    assert found["pilotlight_pool_launch_seconds_total", "l4"] == 40.0
    assert found["pilotlight_pool_failures_total", "l4", "no_capacity"] == 1
    counts.measured((), {})
    assert ("pilotlight_pool_nodes", "l4", "up") not in values(counts)
