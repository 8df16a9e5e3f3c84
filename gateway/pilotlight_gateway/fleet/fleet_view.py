"""Keeps the last reports of nodes and homes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState, NodeReport
from pilotlight_core.model.messages.scheduling import BreakerReport, Breakers
from pilotlight_core.model.records.nodes import NodeRecord, with_labels
from pilotlight_core.model.spec import DEFAULT_BASE
from pilotlight_gateway.fleet.clock_watch import ClockKind, ClockWatch
from pilotlight_gateway.fleet.container_history import ContainerHistory

SILENT_S = 5.0
"""Older reports are not listed: five intervals of a node's."""
REMEMBERED_S = 600.0
"""How long a report counts in questions about hardware."""
NODES_AT_MOST = 10_000
UNWALLED = ("process",)
"""Sandboxes that keep tenants apart in nothing."""
FORGOTTEN_S = 60.0
"""How long reports of breakers are kept; gateways repeat them."""


def guarantees_of(report: NodeReport) -> dict[str, Any]:
    """What a node's agent holds containers to, by its report; what it does not know of is left out."""
    found: dict[str, Any] = {"sandbox": report.sandbox, "isolated": report.sandbox not in UNWALLED}
    if report.host is not None:
        found["host"] = {"cores": report.host.cpu_millis / 1000, "memory": report.host.memory}
    if report.ceilings is not None:
        found["limits"] = msgspec.structs.asdict(report.ceilings)
    if report.devices:
        found["devices"] = [
            {"id": each.id, "type": each.type, "mig": each.mig, "shares": each.shareable, "software": each.fake}
            | ({"withdrawn": each.withdrawn} if each.withdrawn else {})
            for each in report.devices
        ]
    found["features"] = list(report.features)
    return found


class FleetView:
    """The last report of each node, and of each gateway's breakers. Pure; instants are monotonic seconds."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._reports: dict[str, tuple[NodeReport, float]] = {}
        self._breakers: dict[str, tuple[Breakers, float]] = {}
        self.clocks = ClockWatch()
        self.history = ContainerHistory()
        self.record_of: Callable[[str], NodeRecord | None] = lambda _: None
        """What is on record of a node, which counts more than what it says of the same."""

    def forget(self, at: float) -> None:
        """Drop expired reports."""
        for node, (_, heard_at) in self._reports.items():
            if at - heard_at > REMEMBERED_S:
                self.history.forget_node(node)
        self._reports = {node: last for node, last in self._reports.items() if at - last[1] <= REMEMBERED_S}
        self._breakers = {gateway: last for gateway, last in self._breakers.items() if at - last[1] <= FORGOTTEN_S}

    def has_room(self, node: str) -> bool:
        """Whether a report of the node would be stored."""
        return node in self._reports or len(self._reports) < NODES_AT_MOST

    def on_report(self, report: NodeReport, at: float) -> None:
        """Store a report, unless a later one of the same incarnation is known."""
        last = self._reports.get(report.node)
        if last is not None and last[0].instance == report.instance and report.seq <= last[0].seq:
            return
        self._first = at if self._first is None else self._first
        if report.stopped:
            self._reports.pop(report.node, None)
            self.history.forget_node(report.node)
            return
        self.history.on_report(report, at)
        if report.node not in self._reports:
            self._reports = {node: last for node, last in self._reports.items() if at - last[1] <= REMEMBERED_S}
        self._reports[report.node] = (with_labels(report, self.record_of(report.node)), at)

    def on_breakers(self, message: Breakers, at: float) -> None:
        """Store a gateway's report, which replaces its last one."""
        if message.reports:
            self._breakers[message.gateway] = (message, at)
        else:
            self._breakers.pop(message.gateway, None)

    def reports(self, at: float) -> list[NodeReport]:
        """Reports no older than SILENT_S."""
        return [report for report, seen in self._reports.values() if at - seen <= SILENT_S]

    def remembered(self, at: float) -> list[NodeReport]:
        """Reports no older than REMEMBERED_S."""
        return [report for report, seen in self._reports.values() if at - seen <= REMEMBERED_S]

    def listened(self, at: float) -> float:
        """Seconds since the first report; 0 before it."""
        return 0.0 if self._first is None else at - self._first

    def containers(self, tenant: str | None, at: float) -> list[dict[str, Any]]:
        """A tenant's containers (None: all), with their node and breakers: their own, their version's, and how
        many tenants' breakers for the version are open.
        """
        return list(self.each_container(tenant, at))

    def each_container(self, tenant: str | None, at: float) -> Iterator[dict[str, Any]]:
        """The same one by one, as of `at`: of thousands each is a few microseconds, in which nothing else goes on."""
        breakers = self._fresh_reports(at)
        shut = Counter(version for (version, _, of), report in breakers.items() if of and report.state != "closed")
        for report in self.reports(at):
            for container in report.containers:
                if tenant in (None, container.tenant) and container.state is not ContainerState.GONE:
                    yield {
                        **msgspec.structs.asdict(container),
                        "node": report.node,
                        "sandbox": report.sandbox,
                        "engine": msgspec.structs.asdict(container.engine) if container.engine is not None else None,
                        **_breaker(container, breakers, shut),
                    }

    def nodes(self, at: float) -> list[dict[str, Any]]:
        return [
            {
                "node": report.node,
                "region": report.region,
                "zone": report.zone,
                "spot": report.spot,
                "pool": report.pool,
                "sandbox": report.sandbox,
                "draining": report.draining,
                "notice": msgspec.structs.asdict(report.notice) if report.notice is not None else None,
                "bases": report.bases or (DEFAULT_BASE,),
                "blanks": report.blanks,
                "slices": [msgspec.structs.asdict(part) for part in report.slices],
                "containers": len(report.containers),
                "guarantees": guarantees_of(report),
                "clock_s": self.clocks.ahead_s(ClockKind.NODE, report.node),
            }
            for report in sorted(self.reports(at), key=lambda report: report.node)
        ]

    def breakers(self, at: float) -> list[BreakerReport]:
        """All that gateways have told of lately."""
        return list(self._fresh_reports(at).values())

    def breaker_of(self, version: str, at: float) -> str:
        """The state of a version's breaker."""
        report = self._fresh_reports(at).get((version, "", ""))
        return report.state if report is not None else "closed"

    def by_state(self, at: float) -> dict[str, int]:
        """Counts of containers by state."""
        counts: dict[str, int] = {}
        for report in self.reports(at):
            for container in report.containers:
                counts[container.state.value] = counts.get(container.state.value, 0) + 1
        return counts

    def _fresh_reports(self, at: float) -> dict[tuple[str, str, str], BreakerReport]:
        return {
            (report.version, report.container, report.tenant): report
            for message, heard in self._breakers.values()
            if at - heard <= SILENT_S
            for report in message.reports
        }


def _breaker(
    container: ContainerReport, breakers: dict[tuple[str, str, str], BreakerReport], shut: Counter[str]
) -> dict[str, Any]:
    own = breakers.get((container.version, container.id, ""))
    version = breakers.get((container.version, "", ""))
    return {
        "breaker": own.state if own is not None else "closed",
        "failures": own.failures if own is not None else 0,
        "version_breaker": version.state if version is not None else "closed",
        "tenant_breakers": shut[container.version],
    }
