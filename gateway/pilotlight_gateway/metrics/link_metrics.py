"""Metrics of links, and of the ways that calls take to agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pilotlight_gateway.cluster.agent_links import BETWEEN_HOSTS, ON_THE_MACHINE


class StandingLinks(Protocol):
    """Links to agents, or to gateways."""

    def standing(self, way: str) -> int:
        """How many links of this way are in use."""
        ...


def link_metrics(runs: Mapping[str, int], links: Mapping[str, StandingLinks]) -> list[Metric]:
    """Granted calls that were sent, by way; and links in use, by whom they are to."""
    sent = CounterMetricFamily(
        "pilotlight_runs_sent", "Granted calls that were sent to agents, by the way they took.", labels=("way",)
    )
    for way, count in runs.items():
        sent.add_metric((way,), count)
    standing = GaugeMetricFamily(
        "pilotlight_links", "Links in use: connections without the bus between.", labels=("to", "way")
    )
    for name, each in links.items():
        for way in (ON_THE_MACHINE, BETWEEN_HOSTS):
            standing.add_metric((name, way), each.standing(way))
    return [sent, standing]
