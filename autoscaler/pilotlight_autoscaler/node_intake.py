"""What the controller believes of the nodes' messages, on its way into the `World`.

A node may be hostile: it is believed about itself, and about containers that were bound on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from pilotlight_autoscaler.node_drains import NodeDrains
from pilotlight_autoscaler.observations.spot_zones import SpotZones
from pilotlight_autoscaler.observations.world import World
from pilotlight_core.host.binding_book import Bindings
from pilotlight_core.host.node_faults import NodeFaults
from pilotlight_core.host.report_reader import ReportReader
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.messages.node_messages import Credit, Drain, NodeReport, Stop
from pilotlight_core.model.messages.node_reports.node_checks import NodeFault, believed, credit_fault, ended_fault
from pilotlight_core.model.messages.node_reports.report_revisions import SteadyReport
from pilotlight_core.model.messages.ran import Ran
from pilotlight_core.model.records.nodes import NODE_KEYS, NodeRecord, as_recorded
from pilotlight_core.model.subjects import node_of
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.reports import node_of as placed_node_of

NODES_AT_MOST = 10_000
STRAYS_OF_A_NODE = 8
"""Containers of one node that are stopped at a time because they were not bound."""
STOP_AGAIN_S = 5.0


class NodeIntake:
    """The handlers of the nodes' messages. `clock` gives monotonic seconds.

    `record_of`: what is on record of a node, which counts more than what it says of the same.
    """

    def __init__(
        self,
        world: World,
        bindings: Bindings,
        clock: Callable[[], float] = time.monotonic,
        record_of: Callable[[str], NodeRecord | None] = lambda _: None,
        drains: NodeDrains | None = None,
    ) -> None:
        self._world = world
        self._record_of = record_of
        self._drains = drains or NodeDrains()
        self._bindings = bindings
        self._clock = clock
        self.faults = NodeFaults()
        self.spot_zones = SpotZones()
        self._reports = ReportReader()
        self._tried = Fleet()
        """Empty: nodes are put into it to see whether that goes well."""
        self._believed: dict[str, tuple[Binding, ...]] = {}
        """Node -> the bindings of its containers, if all of its last report was believed."""
        self._strays: dict[str, dict[str, float]] = {}
        """Node -> containers in its last report that are not bound, and when each was last stopped."""

    def read(self, subject: str, data: bytes) -> NodeReport | SteadyReport | None:
        """Record the report that came on a subject; None if it is not believed.

        Raises:
            msgspec.DecodeError: if it is none.
        """
        node = node_of(subject)
        report = self._reports.read(node, data)
        if isinstance(report, SteadyReport):
            if self.on_steady_report(subject, report):
                return report
            report = self._reports.read_whole(node, data)
        return report if self.on_report(subject, report) else None

    def on_report(self, subject: str, report: NodeReport) -> bool:
        """Record a node's report; False if it is not believed."""
        node, at = node_of(subject), self._clock()
        if report.node != node:
            self.faults.note(node, "report", NodeFault.OTHER_NODE, at)
            return False
        if node not in self._world.nodes and len(self._world.nodes) >= NODES_AT_MOST:
            self.faults.note(node, "report", NodeFault.TOO_MANY_NODES, at)
            return False
        kept, faults = believed(node, report, self._bindings.live, self._world.nodes.get(node))
        for name, fault in faults.items():
            self.faults.note(node, name, fault, at)
        if why := self._why_senseless(kept):
            self.faults.note(node, f"report: {why}", NodeFault.SENSELESS, at)
            return False
        kept = as_recorded(self._with_ends_checked(node, kept, at), self._record_of(node))
        if self._world.on_report(kept, at):
            self.spot_zones.on_report(kept, at)
            self._note_strays(node, [name for name, fault in faults.items() if fault is NodeFault.NOT_BOUND])
            self._note_believed(node, None if faults else kept)
        return True

    def on_steady_report(self, subject: str, report: SteadyReport) -> bool:
        """Record a report that says nothing new but what moves; False: all of it is wanted."""
        bindings = self._believed.get(node_of(subject))
        if bindings is None or report.node != node_of(subject):
            return False
        for binding in bindings:
            if self._bindings.live(binding.container) is not binding:
                return False
        return self._world.on_steady_report(report, self._clock())

    def on_record(self, key: str, record: object) -> None:
        """What is on record of a node may have changed: its next report is read whole."""
        self._drains.on_record(key, record)
        if key.startswith(NODE_KEYS):
            self._believed.pop(key.removeprefix(NODE_KEYS), None)

    def _note_believed(self, node: str, report: NodeReport | None) -> None:
        """All of a node's report is believed, by its containers' bindings; None: not all."""
        self._believed.pop(node, None)
        if report is None or report.stopped:
            return
        if len(self._believed) >= 2 * NODES_AT_MOST:
            self._believed = {name: known for name, known in self._believed.items() if name in self._world.nodes}
        bindings = [self._bindings.live(each.id) for each in report.containers]
        self._believed[node] = tuple([each for each in bindings if each is not None])

    def _with_ends_checked(self, node: str, report: NodeReport, at: float) -> NodeReport:
        """Without the ended containers that are not its own."""
        if not report.ended:
            return report
        ends = []
        for ended in report.ended:
            fault = ended_fault(node, ended, self._bindings.lately(ended.id))
            if fault is None:
                ends.append(ended)
            else:
                self.faults.note(node, f"end of {ended.id}", fault, at)
        return msgspec.structs.replace(report, ended=tuple(ends)) if len(ends) < len(report.ended) else report

    def on_credit(self, subject: str, credit: Credit) -> None:
        """Record the end of a container's start, of an agent whose reports do not say it."""
        node, at = node_of(subject), self._clock()
        fault = credit_fault(node, credit, self._bindings.lately(credit.container))
        if fault is None:
            self._world.on_credit(credit, at)
        else:
            self.faults.note(node, f"credit of {credit.container}", fault, at)

    def on_ran(self, subject: str, ran: Ran) -> None:
        """Learn from the batches of containers that are bound on the node."""
        node, at = node_of(subject), self._clock()
        if ran.node != node:
            self.faults.note(node, "batches", NodeFault.OTHER_NODE, at)
            return
        for batches in ran.batches:
            binding = self._bindings.lately(batches.container)
            said = (node, batches.version, batches.slice)
            if binding is None or said != (binding.node, binding.version, binding.slice):
                self.faults.note(node, f"batches of {batches.container}", NodeFault.NOT_BOUND, at)
                return
        self._world.on_ran(ran, at)

    def stops(self, epoch: int, at: float) -> list[tuple[str, Stop | Drain]]:
        """The commands that end containers which nobody has bound, or whose node is drained, with their nodes."""
        self.spot_zones.refresh(self._world.nodes, at)
        found: list[tuple[str, Stop | Drain]] = [*self._drains.due(self._world.nodes, epoch, at)]
        for node, strays in self._strays.items():
            for container, stopped_at in strays.items():
                if at - stopped_at >= STOP_AGAIN_S and node in self._world.nodes:
                    strays[container] = at
                    found.append((node, Stop(epoch=epoch, container=container, reason="it is not bound")))
        return found

    def _why_senseless(self, report: NodeReport) -> str:
        """Why its hardware cannot be placed on; "" if it can, or is known."""
        last = self._world.nodes.get(report.node)
        if last is not None and (last.slices, last.devices) == (report.slices, report.devices):
            return ""
        try:
            node = placed_node_of(report)
            if node == self._world.placed_node(report.node):
                return ""  # its slices and instances are held by others than before
            self._tried.put(node)
            self._tried.remove(report.node)
        except (ValueError, LookupError, ArithmeticError, PilotlightError) as error:
            self._tried = Fleet()
            return repr(error)
        return ""

    def _note_strays(self, node: str, containers: list[str]) -> None:
        before = self._strays.pop(node, {})
        if containers:
            self._strays[node] = {name: before.get(name, float("-inf")) for name in containers[:STRAYS_OF_A_NODE]}
