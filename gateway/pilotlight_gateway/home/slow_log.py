"""Names the flows that others slow down in the operator's log; metrics count them without naming tenants."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from pilotlight_gateway.home.slowdown import SlowFlow

REFRESH_EVERY_S = 10.0
NAMED = 32
"""Flows in one log entry, the slowest first; more are only counted."""

log = structlog.get_logger()

FlowKey = tuple[str, str, str]


class SlowLog:
    """Logs each flow once when it becomes slow and once when it is no longer slow."""

    def __init__(self) -> None:
        self._named: frozenset[FlowKey] = frozenset()
        self._refresh_at = 0.0

    def is_due(self, at: float) -> bool:
        return at >= self._refresh_at

    def update(self, slow: Iterable[SlowFlow], at: float) -> None:
        """Log what changed; `slow` are the flows that are slow now."""
        self._refresh_at = at + REFRESH_EVERY_S
        worst = sorted(slow, key=lambda flow: -flow.slowdown)
        flows = {(flow.version, flow.tenant, flow.priority): flow for flow in worst[:NAMED]}
        for key, flow in flows.items():
            if key not in self._named:
                log.warning(
                    "a flow is slowed down",
                    function=flow.function,
                    version=flow.version,
                    tenant=flow.tenant,
                    priority=flow.priority,
                    slowdown=round(flow.slowdown, 1),
                    neighbour=flow.neighbour,
                    slow_flows=len(worst),
                )
        for version, tenant, priority in sorted(self._named.difference(flows)):
            log.info("a flow is not slowed down any more", version=version, tenant=tenant, priority=priority)
        self._named = frozenset(flows)
