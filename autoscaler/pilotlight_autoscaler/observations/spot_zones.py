"""The zones in which spot nodes were taken away lately, as nodes' reports show it. Pure: instants are seconds.

A node has said so itself (`NodeReport.notice`), or is not heard of any more without having stopped in order: of a spot
machine that means the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

from pilotlight_autoscaler.policy.spot.avoided_zones import AvoidedZones
from pilotlight_core.model.messages.node_messages import NodeReport, NoticeKind


class SpotZones:
    def __init__(self) -> None:
        self._avoided = AvoidedZones()
        self._nodes: dict[str, tuple[str, str, float]] = {}
        """Spot node -> its incarnation, its zone, and when that incarnation was first heard of."""
        self._taken: dict[str, float] = {}
        """Those that are being taken away, and by when."""

    def on_report(self, report: NodeReport, at: float) -> None:
        """A node has reported; `report` has what is on record of it."""
        node, zone, notice = report.node, report.zone, report.notice
        if not report.spot or report.stopped:
            self._nodes.pop(node, None)
            self._taken.pop(node, None)
            return
        known = self._nodes.get(node)
        since = at if known is None or known[0] != report.instance else known[2]
        if known is None or known[:2] != (report.instance, zone):
            self._nodes[node] = (report.instance, zone, since)
        if notice is None or notice.kind is not NoticeKind.PREEMPT:
            self._taken.pop(node, None)
            self._avoided.zone_served(zone, since)
        elif self._taken.get(node) != notice.deadline:
            self._taken[node] = notice.deadline
            self._avoided.zone_preempted(zone, at)

    def refresh(self, nodes: Set[str] | Mapping[str, NodeReport], at: float) -> None:
        """Find the spot nodes that are not among `nodes` any more."""
        for node in [node for node in self._nodes if node not in nodes]:
            _, zone, _ = self._nodes.pop(node)
            if self._taken.pop(node, None) is None:
                self._avoided.zone_preempted(zone, at)

    def on_preempted(self, zone: str, at: float) -> None:
        """Its provider has said elsewhere that it takes a machine of the zone away, or has none there."""
        self._avoided.zone_preempted(zone, at)

    def avoided(self, zones: Collection[str], at: float) -> frozenset[str]:
        """Those of a pool's zones in which no spot node is to be launched now."""
        return self._avoided.avoided(zones, at)
