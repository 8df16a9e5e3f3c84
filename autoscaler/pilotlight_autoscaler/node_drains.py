"""Ends the containers of nodes that are drained, as others take their place: by operators, or by a provider's advice.

A node that is drained counts as draining: its containers are not counted, so that what is wanted starts elsewhere. A
container whose calls matter ends once another one of its version is ready there, or when that takes too long; one that
has had nothing to do ends at once. What runs in it has the platform's grace.

A node whose provider recommends to replace it is drained too, but without haste: a container ends once another one of
its version is ready elsewhere, however long that takes, or when it has had nothing to do for long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pilotlight_core.model.messages.node_messages import (
    STOP_GRACE_S,
    ContainerReport,
    ContainerState,
    Drain,
    NodeReport,
)
from pilotlight_core.model.records.nodes import NODE_KEYS, NodeRecord, NodeState, is_at_risk

IDLE_S = 5.0
REPLACED_WITHIN_S = 60.0
AT_ONCE = 8
"""Of all nodes, each second."""
AGAIN_S = 5.0
"""A command may be lost."""
DRAINED = "an operator drains its node"
AT_RISK = "its provider recommends to replace its node"
LONG_IDLE_S = 600.0
ENDING = (ContainerState.DRAINING, ContainerState.GONE)


class NodeDrains:
    """`records` are those that there are at the start; `on_record` follows them."""

    def __init__(self, records: Iterable[NodeRecord] = (), *, grace_s: float = STOP_GRACE_S) -> None:
        self._grace_ms = grace_s * 1000.0
        self._since: dict[str, float | None] = {}
        """The nodes that are drained, and when that was first looked at."""
        self._told: dict[str, float] = {}
        for record in records:
            self.on_record(f"{NODE_KEYS}{record.node}", record)

    def on_record(self, key: str, record: object) -> None:
        """A record of the registry has changed."""
        if not key.startswith(NODE_KEYS):
            return
        node = key.removeprefix(NODE_KEYS)
        if isinstance(record, NodeRecord) and record.state is NodeState.DRAINING:
            self._since.setdefault(node, None)
        else:
            self._since.pop(node, None)

    def due(self, reports: Mapping[str, NodeReport], epoch: int, at: float) -> list[tuple[str, Drain]]:
        """The commands that are due, with their nodes. `at`: monotonic seconds."""
        at_risk = [node for node, report in reports.items() if is_at_risk(report) and node not in self._since]
        if not self._since and not at_risk:
            return []
        self._told = {name: told for name, told in self._told.items() if at - told < AGAIN_S}
        found: list[tuple[str, Drain]] = []
        for node in list(self._since):
            since = self._since[node] = at if (began := self._since[node]) is None else began
            self._add_commands(node, self._ending(reports, node, at - since), DRAINED, found, epoch, at)
        for node in at_risk:
            self._add_commands(node, _replaced(reports, node), AT_RISK, found, epoch, at)
        return found

    def _add_commands(
        self,
        node: str,
        ending: Iterable[ContainerReport],
        why: str,
        found: list[tuple[str, Drain]],
        epoch: int,
        at: float,
    ) -> None:
        """Add the commands to those that were found, unless they were sent lately, or there are enough."""
        for each in ending:
            if each.id not in self._told and len(found) < AT_ONCE:
                self._told[each.id] = at
                found.append((node, Drain(epoch=epoch, container=each.id, within_ms=self._grace_ms, reason=why)))

    def _ending(self, reports: Mapping[str, NodeReport], node: str, for_s: float) -> Iterator[ContainerReport]:
        """The containers of a node that is drained for so many seconds which are to end now."""
        report = reports.get(node)
        there = [each for each in report.containers if each.state not in ENDING] if report is not None else []
        needed = {each.version for each in there if each.idle_s < IDLE_S}
        ready = _ready_elsewhere(reports, needed) if needed and for_s < REPLACED_WITHIN_S else needed
        return (each for each in there if each.idle_s >= IDLE_S or each.version in ready)


def _replaced(reports: Mapping[str, NodeReport], node: str) -> Iterator[ContainerReport]:
    """The containers of a node that others have replaced, or that nobody has needed for long."""
    there = [each for each in reports[node].containers if each.state not in ENDING]
    ready = _ready_elsewhere(reports, {each.version for each in there}) if there else set()
    return (each for each in there if each.idle_s >= LONG_IDLE_S or each.version in ready)


def _ready_elsewhere(reports: Mapping[str, NodeReport], versions: set[str]) -> set[str]:
    """Those of the versions that have a ready container on a node that stays."""
    return {
        each.version
        for report in reports.values()
        if not report.draining
        for each in report.containers
        if each.state is ContainerState.READY and each.version in versions
    }
