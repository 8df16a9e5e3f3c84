"""Metrics of pools: their nodes by state, what was launched and what failed, and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pilotlight_core.model.records.pools import LaunchRecord, LaunchState, PoolRecord

ALL = "-"
"""In the place of a pool's name."""


class PoolCounts:
    """Counts since this process began, and what is on record now. There are no more pools than `MOST_POOLS`."""

    def __init__(self) -> None:
        self._launched = Counter[str]()
        self._arrived = Counter[str]()
        self._waited_s: dict[str, float] = {}
        self._failed = Counter[tuple[str, str]]()
        self._nodes = Counter[tuple[str, LaunchState]]()
        self._usd: dict[str, float] = {}
        self._pools: tuple[str, ...] = ()

    def launched(self, pool: str) -> None:
        self._launched[pool] += 1

    def arrived(self, pool: str, took_s: float) -> None:
        self._arrived[pool] += 1
        self._waited_s[pool] = self._waited_s.get(pool, 0.0) + took_s

    def failed(self, pool: str, what: str) -> None:
        self._failed[pool, what] += 1

    def measured(self, launches: Iterable[LaunchRecord], pools: Mapping[str, PoolRecord]) -> None:
        """What is on record now."""
        found = list(launches)
        self._pools = tuple(sorted(pools))
        self._nodes = Counter((each.pool, each.state) for each in found)
        self._usd = {}
        for each in found:
            self._usd[each.pool] = self._usd.get(each.pool, 0.0) + each.usd_per_hour

    def collect(self) -> Iterator[Metric]:
        """The families of a scrape."""
        text = "Machines of pools, by their state."
        nodes = GaugeMetricFamily("pilotlight_pool_nodes", text, labels=("pool", "state"))
        cost = GaugeMetricFamily(
            "pilotlight_pool_usd_per_hour", "What the machines of a pool cost in an hour.", labels=("pool",)
        )
        for pool in self._pools:
            for state in LaunchState:
                nodes.add_metric((pool, state), self._nodes[pool, state])
            cost.add_metric((pool,), self._usd.get(pool, 0.0))
        yield nodes
        yield cost
        launches = CounterMetricFamily("pilotlight_pool_launches", "Machines that were launched.", labels=("pool",))
        for pool in self._pools:
            launches.add_metric((pool,), self._launched[pool])
        yield launches
        failures = CounterMetricFamily(
            "pilotlight_pool_failures", "What providers did not do, by what it was.", labels=("pool", "what")
        )
        for (pool, what), number in self._failed.items():
            failures.add_metric((pool, what), number)
        yield failures
        arrivals = CounterMetricFamily(
            "pilotlight_pool_arrivals", "Machines whose agents have reported.", labels=("pool",)
        )
        waited = CounterMetricFamily(
            "pilotlight_pool_launch_seconds", "How long those took from their launch to that, in all.", labels=("pool",)
        )
        for pool in self._pools:
            arrivals.add_metric((pool,), self._arrived[pool])
            waited.add_metric((pool,), self._waited_s.get(pool, 0.0))
        yield arrivals
        yield waited
