"""Metrics of links, and of the ways that calls take to agents."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


def link_metrics(runs: Mapping[str, int], links: Mapping[str, Mapping[str, int]]) -> list[Metric]:
    """Granted calls that were sent, by way; and links in use, by whom they are to and by way."""
    sent = CounterMetricFamily(
        "pilotlight_runs_sent", "Granted calls that were sent to agents, by the way they took.", labels=("way",)
    )
    for way, count in runs.items():
        sent.add_metric((way,), count)
    standing = GaugeMetricFamily(
        "pilotlight_links", "Links in use: connections without the bus between.", labels=("to", "way")
    )
    for name, ways in links.items():
        for way, count in ways.items():
            standing.add_metric((name, way), count)
    return [sent, standing]
