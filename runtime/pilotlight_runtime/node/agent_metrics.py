"""Metrics of an agent: its containers and their starts, slices, blanks, and usage that is not stored yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import Metric

from pilotlight_core.host.metrics.metric_families import (
    BoundedLabel,
    counter,
    counter_by,
    gauge,
    gauge_by,
    histogram,
    histogram_by,
)
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_runtime.node.agent_parts import AgentParts
from pilotlight_runtime.node.device_metrics import device_gauges
from pilotlight_runtime.node.engine_metrics import EngineMetrics

MOST_BASES = 20
"""Base environments with a label of their own."""
EGRESS = {
    "sent_bytes": "Bytes that containers have sent through the proxy, by function.",
    "received_bytes": "Bytes that containers have received through the proxy, by function.",
    "connections": "Connections that the proxy has made for containers, by function.",
    "refused": "Connections that the proxy has refused to containers, by function.",
}
"""Fields of EgressCounts."""
STATES = tuple(state for state in ContainerState if state is not ContainerState.GONE)


class AgentMetrics:
    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts
        self._base = BoundedLabel(MOST_BASES)
        self._engines = EngineMetrics()

    def collect(self) -> Iterator[Metric]:
        """A `MetricSource`."""
        containers, pools, metering = self._parts.containers, self._parts.pools, self._parts.metering
        states = Counter(container.state for container in containers)
        text = "Containers of this node, by state."
        yield gauge_by("pilotlight_agent_containers", text, "state", {state.value: states[state] for state in STATES})
        held = [bool(part.container) for part in containers.slices()]
        text = "Slices that this node offers, by whether a container has them."
        yield gauge_by("pilotlight_agent_slices", text, "state", {"free": held.count(False), "held": held.count(True)})
        memory = containers.memory
        text = "Host memory that this node keeps for parked containers and weights, by what has it."
        free = memory.total - memory.parked - memory.cached
        kinds = {"parked": memory.parked, "cached": memory.cached, "free": free}
        yield gauge_by("pilotlight_agent_warm_memory_bytes", text, "state", kinds)
        blanks = Counter[str]()
        for base, ready in pools.ready.items():
            blanks[self._base(base)] += ready
        yield gauge_by("pilotlight_agent_blanks", "Blanks that are ready, by base environment.", "base", blanks)
        text = "Blanks that this node should have and that are not ready."
        yield gauge("pilotlight_agent_blanks_missing", text, pools.missing(containers))
        starts = containers.starts
        yield histogram("pilotlight_agent_start_seconds", "How long containers took to become ready.", starts.ready)
        text = "How long each step took of starts that succeeded."
        yield histogram_by("pilotlight_agent_start_step_seconds", text, "step", starts.steps)
        yield counter("pilotlight_agent_failed_starts", "Containers that did not become ready.", starts.failed)
        text = "Ready containers that a check of their function has taken out of service."
        yield counter("pilotlight_agent_failed_checks", text, starts.unfit)
        yield from device_gauges(self._parts.slices.devices())
        yield from self._egress()
        serving = ((one.id, one.serving.engine) for one in containers if one.serving is not None)
        yield from self._engines.collect((name, report) for name, report in serving if report is not None)
        environments = self._parts.environments.cache
        yield gauge("pilotlight_agent_environments", "What this node has built of requirements.", len(environments))
        text = "Bytes of what this node has built of requirements."
        yield gauge("pilotlight_agent_environment_bytes", text, environments.bytes)
        text = "Usage on this node's disk that the bus has not stored yet."
        yield gauge("pilotlight_agent_usage_unacknowledged_bytes", text, metering.unacknowledged_bytes)
        text = "Records of usage that the disk has not taken yet."
        yield gauge("pilotlight_agent_usage_unwritten_records", text, metering.unwritten)

    def _egress(self) -> Iterator[Metric]:
        counts = self._parts.ways_out.counts
        for name, text in EGRESS.items():
            values = {function: getattr(counted, name) for function, counted in counts.items()}
            yield counter_by(f"pilotlight_agent_egress_{name}", text, "function", values)
