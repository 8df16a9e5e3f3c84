"""Metrics of nodes' messages."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.core import CounterMetricFamily, Metric

from pilotlight_core.model.messages.node_checks import NodeFault


def node_fault_counts(counted: Mapping[str, int]) -> list[Metric]:
    """Messages of agents that were not believed, by reason; the gateway's log names the nodes."""
    family = CounterMetricFamily(
        "pilotlight_node_messages_refused", "Messages of agents that were not believed.", labels=("reason",)
    )
    for reason in NodeFault:
        family.add_metric((reason,), counted.get(reason, 0))
    return [family]
