"""Metrics of nodes' messages, and of clocks."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pilotlight_core.model.messages.node_reports.node_checks import NodeFault
from pilotlight_gateway.fleet.clock_watch import ClockKind, ClockWatch


def node_fault_counts(counted: Mapping[str, int]) -> list[Metric]:
    """Messages of agents that were not believed, by reason; the gateway's log names the nodes."""
    family = CounterMetricFamily(
        "pilotlight_node_messages_refused", "Messages of agents that were not believed.", labels=("reason",)
    )
    for reason in NodeFault:
        family.add_metric((reason,), counted.get(reason, 0))
    return [family]


def clock_gauges(clocks: ClockWatch, at: float) -> list[Metric]:
    """Clocks that differ from this gateway's, at a unix second by it; its log names them."""
    off = GaugeMetricFamily(
        "pilotlight_clocks_off", "Clocks that differ from this gateway's by more than two seconds.", labels=("of",)
    )
    most = GaugeMetricFamily(
        "pilotlight_clock_skew_seconds", "The most by which one of these is ahead or behind.", labels=("of",)
    )
    for kind in ClockKind:
        found = clocks.off(kind, at)
        off.add_metric((kind,), len(found))
        most.add_metric((kind,), max(map(abs, found), default=0.0))
    return [off, most]
