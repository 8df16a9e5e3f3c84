"""The controller's observations: node reports, demands, commands under way. Pure: time is an argument (seconds).

The agents' reports are authoritative. The world is rebuilt from repeated messages (reports each second, demand each 250
ms), so a new leader has it within a second, and what is not repeated is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import takewhile

from msgspec.structs import force_setattr
from mypy_extensions import mypyc_attr

from pilotlight_autoscaler.observations.call_rate import CallRate
from pilotlight_autoscaler.observations.container_index import ContainerIndex
from pilotlight_autoscaler.observations.curve_learning import CurveLearner
from pilotlight_autoscaler.observations.node_hopes import NodeHopes
from pilotlight_autoscaler.observations.pending_commands import BIND_LOST_S, PendingBind, PendingUnpark, stuck_devices
from pilotlight_autoscaler.observations.planned_starts import PlannedJobStarts
from pilotlight_autoscaler.observations.refusal_memory import RefusalMemory
from pilotlight_autoscaler.observations.resident_weights import ResidentWeights
from pilotlight_autoscaler.observations.scaling_memories import ScalingMemories
from pilotlight_autoscaler.observations.wish_log import WishLog
from pilotlight_autoscaler.plans.plan_execution import PlanExecutions
from pilotlight_autoscaler.policy.move_budget import MoveBudget
from pilotlight_autoscaler.policy.scale_down_pace import ScaleDownPace
from pilotlight_autoscaler.policy.start_backoff import StartBackoff
from pilotlight_autoscaler.policy.version_reservation import VersionReservation
from pilotlight_autoscaler.policy.version_shutdown import VersionShutdowns
from pilotlight_core.model.devices import DeviceReport
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.messages.demand import Demand
from pilotlight_core.model.messages.node_messages import (
    GIVING_WAY,
    Bind,
    ContainerReport,
    ContainerState,
    Credit,
    NodeReport,
)
from pilotlight_core.model.messages.node_reports.report_revisions import SteadyReport
from pilotlight_core.model.messages.ran import Ran
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.ask import Ask, avoided_by
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.explain.decision_journal import DecisionLog
from pilotlight_placement.explain.speeds import key_of_slice
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.reports import (
    FleetMirror,
    IncomingContainer,
    ReportOverlay,
    is_same_node,
    slice_named,
)
from pilotlight_placement.fragmentation.histogram import DemandHistogram
from pilotlight_placement.hardware.node import Node

FORGET_EVERY_S = 1.0
"""What is dropped after a minute need not be looked for in each pass."""
NODE_SILENT_S = 3.0
"""A node without a report for so long (three reports) gets no new containers."""
NODE_LOST_S = 6.0
"""After this its containers count as gone; if the agent was only paused, its instance number fences it."""
DEMAND_STALE_S = 2.0
"""Homes repeat demand each 250 ms; after this the home is gone."""
DEMAND_KEPT_S = 60.0
"""So long the demand of a silent home keeps its versions active."""
REPLACING_KEPT_S = 60.0
"""So long after the last question for its replacement a container does not count; gateways ask each second."""
STAYING_KEPT_S = 10.0
"""So long a parked container is not told again to serve after it could not: its node may have no room for it."""
PASSING = frozenset(
    {"slice_taken", "memory_taken", "cpu_taken", "no_such_slice", "slice_withdrawn", "draining", "gone", "stale_epoch"}
)
"""Temporary refusals: the next report, or the next leader, resolves them."""
FOLLOW_EVERY_S = 10.0
"""Places are scored by what is asked for so often, at most: each time all devices are scored anew."""


def _is_over(demand: Demand, told: float, at: float) -> bool:
    """Whether nothing follows from a demand any more: its home has said that it is done, or is silent for long."""
    return at - told > (DEMAND_KEPT_S if demand.waiting or demand.running or demand.backlog else 2 * DEMAND_STALE_S)


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(kw_only=True)
class World:
    nodes: dict[str, NodeReport] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    """When each node was last heard of, the longest silent first."""
    lost: list[str] = field(default_factory=list)
    demands: dict[str, tuple[Demand, float]] = field(default_factory=dict)
    pending: dict[str, PendingBind] = field(default_factory=dict)
    draining: dict[str, float] = field(default_factory=dict)
    """Containers with a drain under way, and when it was sent."""
    parking: dict[str, float] = field(default_factory=dict)
    """Containers that were told to leave their slices, and when."""
    unparking: dict[str, PendingUnpark] = field(default_factory=dict)
    """Parked containers that are told to serve again."""
    staying: dict[str, float] = field(default_factory=dict)
    """Parked containers that could not serve again, and when that was: others start in their place."""
    replacing: dict[str, float] = field(default_factory=dict)
    """Containers that serve until another of their version is ready, and when that was last asked for."""
    backoff: StartBackoff = field(default_factory=StartBackoff)
    decisions: DecisionLog = field(default_factory=DecisionLog)
    asked: DemandHistogram = field(default_factory=DemandHistogram)
    """The recent demand by shape of ask."""
    executions: PlanExecutions = field(default_factory=PlanExecutions)
    levels: dict[str, str] = field(default_factory=dict)
    """The number of containers for each function with a service level and a known curve, in words."""
    moves: MoveBudget = field(default_factory=MoveBudget)
    scale_down: ScaleDownPace = field(default_factory=ScaleDownPace)
    learner: CurveLearner = field(default_factory=CurveLearner)
    scaling: ScalingMemories = field(default_factory=ScalingMemories)
    planned: PlannedJobStarts = field(default_factory=PlannedJobStarts)
    wishes: WishLog = field(default_factory=WishLog)
    reservation: VersionReservation | None = None
    """Devices reserved for the version that has waited longest."""
    reclaimed: dict[str, str] = field(default_factory=dict)
    """Containers that were drained while calls ran in them, and the tenant for whose calls."""
    preemption_turn: int = 0
    """Index of the blocked version with which the next pass begins its preemption."""
    shutdowns: VersionShutdowns = field(default_factory=VersionShutdowns)
    agreeing: set[str] = field(default_factory=set)
    """Versions that agree to other tenants on their GPU."""
    avoiding: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """version -> the functions that it avoids, of those that avoid any."""
    _reported: set[str] = field(default_factory=set)
    """Nodes of which the fleet is not told yet: they have reported, or are gone."""
    _tidied_at: float = -math.inf
    weights: ResidentWeights = field(default_factory=ResidentWeights)
    _rates: dict[str, CallRate] = field(default_factory=dict)
    refusals: RefusalMemory = field(default_factory=RefusalMemory)
    """Versions that had no place, which they have not either until something is freed."""
    hopes: NodeHopes = field(default_factory=NodeHopes)
    """Which of them wait for a node of a pool."""
    index: ContainerIndex = field(default_factory=ContainerIndex)
    """The containers of all nodes."""
    waiting: set[str] = field(default_factory=set)
    """Versions that had calls without room when their home was last heard of."""
    changed: set[str] = field(default_factory=set)
    """Versions whose demand has come or gone, or of which a start has ended, since a pass last asked."""
    unheard: Sequence[Binding] = ()
    """Containers that are bound on nodes which have had no time to report yet: they count as starts under way."""
    prices: Prices = field(default_factory=Prices)
    """What devices cost, in the operator's book."""
    _mirror: FleetMirror = field(init=False)
    _followed_at: float = -math.inf
    """When places were scored by what is asked for."""
    _settled: dict[str, float] = field(default_factory=dict)
    """Containers whose start was over when they were last heard of, and are not ready any more; and when that was."""
    _unfit: dict[str, float] = field(default_factory=dict)
    """Containers of which a check has failed, and when that was last told."""

    def __post_init__(self) -> None:
        self._mirror = FleetMirror(self.prices)

    def on_report(self, report: NodeReport, at: float) -> bool:
        """Record a node's report; False if it is older than the last one of the incarnation."""
        last = self.nodes.get(report.node)
        if last is not None and last.instance == report.instance and report.seq <= last.seq:
            return False
        if report.stopped:
            self._forget_node(report.node)
            return True
        before = last.containers if last is not None else ()
        are_same = self.index.replace(report.node, before, report.containers)
        if not are_same:
            self._note_unready(before, at)
            for container in report.containers:
                if container.unfit:
                    self._on_unfit(container.id, container.version, container.tenant, at)
        self.nodes[report.node] = report
        is_back = self._note_heard(report.node, at)
        if last is None or is_back or not (are_same and is_same_node(last, report)):
            self._reported.add(report.node)
        self._note_starts(report.containers)
        told = {each.id for each in last.ended or ()} if last is not None else ()
        for ended in report.ended or ():
            if ended.id not in told:  # agents repeat an end for some seconds
                self.pending.pop(ended.id, None)
                if ended.unfit:
                    self._on_unfit(ended.id, ended.version, ended.tenant, at)
                self._on_end(ended.id, ended.version, ended.tenant, at, was_ready=ended.was_ready or report.draining)
        return True

    def on_steady_report(self, report: SteadyReport, at: float) -> bool:
        """Record a report that says nothing new but what moves; False: the node's last one is not the one meant."""
        last = self.nodes.get(report.node)
        if last is None or (last.instance, last.revision) != (report.instance, report.revision):
            return False
        if report.seq <= last.seq:
            return True
        if not self.index.move(last.containers, report.containers):
            return False
        force_setattr(last, "seq", report.seq)
        if self._note_heard(report.node, at):
            self._reported.add(report.node)
        self._note_starts(last.containers)
        return True

    def note_unheard(self, bindings: Sequence[Binding]) -> None:
        """These containers are bound on nodes that have had no time to report."""
        if self.unheard and not bindings:
            self.refusals.open_all()  # some may be for want of what was not there after all
        self.unheard = bindings

    def _note_heard(self, node: str, at: float) -> bool:
        """Record that a node is heard of; whether it was silent before."""
        was_silent = at - self.seen.pop(node, -math.inf) > NODE_SILENT_S
        self.seen[node] = at
        return was_silent

    def _note_starts(self, containers: Iterable[ContainerReport]) -> None:
        """Record that these are there."""
        if self.pending or self.backoff.has_failures:
            for container in containers:
                self.pending.pop(container.id, None)
                if container.state is ContainerState.READY:
                    self.backoff.succeeded(container.version)

    def _note_unready(self, before: Iterable[ContainerReport], at: float) -> None:
        """Remember of those of the containers that were ready and are not any more that their start was over."""
        for each in before:
            if each.state is ContainerState.READY and self.state(each.id) is not ContainerState.READY:
                self._settled[each.id] = at

    def on_demand(self, demand: Demand, at: float) -> None:
        version = demand.version
        known = self.demands.get(version)
        self.demands[version] = (demand, at)
        if demand.queued or demand.refused or demand.refused_calls or demand.late:
            self.waiting.add(version)
        elif known is None or bool(known[0].running) is not bool(demand.running) or version in self.waiting:
            self.waiting.discard(version)
            self.changed.add(version)
        rate = self._rates.get(version)
        if rate is None:
            rate = self._rates[version] = CallRate()
        rate.count(demand.arrivals, at)

    def rate(self, version: str, at: float) -> float:
        """Calls per second that arrive for a version; 0 without reports of it."""
        return self._rates[version].value if self.demand(version, at) is not None and version in self._rates else 0.0

    def on_ran(self, ran: Ran, at: float) -> None:
        """Learn the durations of batches on known slices."""
        report = self.nodes.get(ran.node)
        place = self._mirror.fleet.places.get(ran.node)
        if report is None or place is None or report.instance != ran.instance:
            return
        for batches in ran.batches:
            slice_ = slice_named(place.node, batches.slice)
            if slice_ is not None and (cut := key_of_slice(slice_)):
                gpu = self.device(ran.node, slice_.ids[0])
                self.learner.observe(batches, (slice_.type, cut, gpu is not None and gpu.fake), at)

    def on_credit(self, credit: Credit, at: float) -> None:
        """Record the end of a start: a failed one delays the next by up to 30 s; a success resets that."""
        name = credit.container
        if credit.state is ContainerState.READY:
            self._settled[name] = at
            self.backoff.succeeded(credit.version)
        elif credit.state is ContainerState.GONE:
            self.pending.pop(name, None)
            self._on_end(name, credit.version, credit.tenant, at)

    def _on_end(self, container: str, version: str, tenant: str, at: float, *, was_ready: bool = False) -> None:
        # Whether the tenant's code or the platform failed, the next start would fail too.
        if not (was_ready or container in self.draining or self._is_settled(container)):
            self.backoff.failed(version, tenant, at)
        self._settled[container] = at
        self.changed.add(version)

    def _on_unfit(self, container: str, version: str, tenant: str, at: float) -> None:
        """A check has failed: the next container may be ready and fail it too, so that it is makes up for nothing."""
        if container not in self._unfit:
            self.backoff.failed(version, tenant, at, was_ready=True)
        self._unfit[container] = at

    def _is_settled(self, container: str) -> bool:
        """Whether its start is over."""
        return container in self._settled or self.state(container) is ContainerState.READY

    def on_refused(self, bind: Bind, reason: str, at: float) -> None:
        """Record a refused bind: unless the reason is temporary, the next start is delayed as after a failed one."""
        if reason == GIVING_WAY:
            if (pending := self.pending.get(bind.container)) is not None:
                self.pending[bind.container] = replace(pending, gives_way=True)
            return
        self.pending.pop(bind.container, None)
        self.changed.add(bind.version)
        if reason not in PASSING:
            self.backoff.failed(bind.version, bind.tenant, at)

    def on_stays_parked(self, container: str, at: float) -> None:
        """Record that a parked container was told to serve again in vain."""
        if self.unparking.pop(container, None) is not None:
            self.staying[container] = at
            self.changed.add(self.index.version_of(container))

    def forget(self, at: float) -> None:
        """Drop what was not repeated for too long."""
        for node in self._silent(at, NODE_LOST_S):
            if (report := self.nodes.get(node)) is not None and not report.draining:
                self.lost = [*self.lost[-999:], node]
            self._forget_node(node)
            self.weights.forget(node)
            del self.seen[node]
        self.executions.close_devices(stuck_devices(self.pending.values(), at), at)  # others are tried first
        self.pending = {c: p for c, p in self.pending.items() if not p.is_over(at)}
        self.draining = {c: t for c, t in self.draining.items() if at - t <= 60.0}
        self.parking = {c: t for c, t in self.parking.items() if at - t <= BIND_LOST_S and not self.index.is_parked(c)}
        self.unparking = {
            c: told for c, told in self.unparking.items() if at - told.at <= BIND_LOST_S and self.index.is_parked(c)
        }
        self.staying = {c: t for c, t in self.staying.items() if at - t <= STAYING_KEPT_S}
        self.replacing = {c: t for c, t in self.replacing.items() if at - t <= REPLACING_KEPT_S}
        if not 0.0 <= at - self._tidied_at < FORGET_EVERY_S:
            self._tidied_at = at
            self._tidy(at)

    def _tidy(self, at: float) -> None:
        old = (each for each in self.demands.items() if at - each[1][1] > 2 * DEMAND_STALE_S)
        for version in [version for version, told in old if _is_over(*told, at)]:
            del self.demands[version]
            self._rates.pop(version, None)
            self.waiting.discard(version)
        self._settled = {c: t for c, t in self._settled.items() if at - t <= 60.0}
        self._unfit = {c: t for c, t in self._unfit.items() if at - t <= 60.0 or self.index.get(c) is not None}
        self.backoff.forget(at)
        self.scale_down.forget(at)
        self.planned.forget(at)

    def _silent(self, at: float, for_s: float) -> list[str]:
        """The nodes that were not heard of for longer."""
        return list(takewhile(lambda node: at - self.seen[node] > for_s, self.seen))

    def _forget_node(self, node: str) -> None:
        self._reported.add(node)
        if (report := self.nodes.pop(node, None)) is not None:
            self.index.replace(node, report.containers, ())
            self._note_unready(report.containers, self.seen.get(node, 0.0))

    def foreseen(self, at: float) -> Iterator[str]:
        """The functions (`tenant:app.function`) that should have containers before anybody calls them."""
        yield from self.scaling.ahead
        yield from self.planned.soon(self.scaling.load_s, at)

    def demand(self, version: str, at: float) -> Demand | None:
        demand, seen = self.demands.get(version, (None, 0.0))
        return demand if demand is not None and at - seen <= DEMAND_STALE_S else None

    def tenant_of(self, version: str) -> str:
        """Whose version it is, as its home has told; "": nobody has."""
        told = self.demands.get(version)
        return told[0].tenant if told is not None else ""

    def home_is_silent(self, version: str, at: float) -> bool:
        """Whether a version had calls when its home was last heard of, and that was a while ago.

        A home that is done says so. One that died, or cannot be heard, may have calls: another one takes them up.
        """
        told, seen = self.demands.get(version, (None, 0.0))
        return told is not None and at - seen > DEMAND_STALE_S and bool(told.waiting or told.running)

    def demands_of(self, function: str, at: float) -> list[Demand]:
        """The demands of versions of a function (`tenant:app.function`) that have calls or jobs; none of homes of 0.1.

        They do not say whose they are.
        """
        of_it = (told for name in self.demands if (told := self.demand(name, at)) and told.function == function)
        return [told for told in of_it if told.queued or told.running or told.backlog]

    def containers(self, at: float) -> Iterator[tuple[str, ContainerReport]]:
        """Every container on a node that is not lost, with its node's name."""
        for node in self.nodes.values():
            if at - self.seen.get(node.node, at) <= NODE_LOST_S:
                for container in node.containers:
                    yield node.node, container

    def lost_binds(self, at: float) -> list[PendingBind]:
        """Binds to send again; each is marked as sent at `at`."""
        lost = [p for p in self.pending.values() if p.is_due(at)]
        for item in lost:
            self.pending[item.bind.container] = replace(item, at=at, tries=item.tries + 1)
        return lost

    def fleet(self, at: float) -> Fleet:
        """The fleet of nodes that accept containers, with incoming ones; always the same object, updated."""
        told: dict[str, NodeReport | None] = {name: self.nodes.get(name) for name in self._reported}
        told |= dict.fromkeys(self._silent(at, NODE_SILENT_S))
        binds = [(pending.node, pending.bind) for pending in self.pending.values()]
        binds += [(step.node, bind) for step, bind in self.executions.starts()]
        coming = tuple(
            IncomingContainer(
                container=bind.container, node=node, slice=bind.slice, function=bind.function, tenant=bind.tenant,
                neighbours=bind.version in self.agreeing, host=bind.host, avoid=self.avoiding.get(bind.version, ()),
            )
            for node, bind in binds
        ) + tuple([told.coming for told in self.unparking.values()])  # fmt: skip
        beside = ReportOverlay(
            coming=coming,
            closed=self.executions.closed(),
            recut=self.executions.recut(),
            resident=self.weights.by_node(self.nodes),
            agreeing=self.agreeing,
            avoiding=self.avoiding,
        )
        fleet = self._mirror.update(told, beside, at)
        self._reported.clear()
        return fleet

    def take_over(self, at: float) -> None:
        """Have the fleet up to date, if nodes have reported something new."""
        if self._reported:
            self.fleet(at)

    def placed_node(self, name: str) -> Node | None:
        """A node as containers are placed on it; None: none are."""
        place = self._mirror.fleet.places.get(name)
        return place.node if place is not None else None

    def follow_demand(self, at: float) -> None:
        """Go a step towards scoring places by what is asked for now."""
        if not 0.0 <= at - self._followed_at < FOLLOW_EVERY_S and not self._mirror.fleet.follow_stepwise(self.asked):
            self._followed_at = at

    def refresh_refusals(self, ask_of: Callable[[str], Ask | None], at: float) -> None:
        """Find the versions that had no place, and may have one now."""
        fleet = self.fleet(at)

        def groups_of(version: str) -> frozenset[DeviceGroup]:
            ask = ask_of(version)
            return fleet.offers(ask).of_use if ask is not None else frozenset()

        self.refusals.refresh(fleet, self.index.long_idle, self.index.changed_tenants, groups_of)
        self.index.long_idle.clear()
        self.index.changed_tenants.clear()

    def observe_versions(self, versions: Mapping[str, VersionRecord], some: Iterable[str] | None = None) -> None:
        """Record what reports lack: which versions agree to neighbours or avoid functions, and what they load.

        Of all but `some` nothing is new; None: anything may be.
        """
        if some is None:
            some = {*versions, *self.agreeing, *self.avoiding, *self.weights.named}
        for name in some:
            self._observe_version(name, versions.get(name))
        for name, weights in self.weights.named.items():
            for found in self.index.of(name):
                if found.report.state is ContainerState.READY:
                    self.weights.note_ready(self.nodes[found.node], weights)

    def _observe_version(self, name: str, record: VersionRecord | None) -> None:
        avoided = avoided_by(record.spec, record.tenant) if record is not None and record.spec.placing.avoid else ()
        agrees = record is not None and record.spec.placing.neighbours
        if agrees != (name in self.agreeing) or avoided != self.avoiding.get(name, ()):
            self._reported.update(found.node for found in self.index.of(name))
            (self.agreeing.add if agrees else self.agreeing.discard)(name)
            if avoided:
                self.avoiding[name] = avoided
            else:
                self.avoiding.pop(name, None)
        self.weights.note_version(name, record)

    # --- NodeObservations ---

    def state(self, container: str) -> ContainerState | None:
        found = self.index.get(container)
        return found.state if found else None

    def absent(self, containers: Set[str]) -> set[str]:
        """Those of the containers that are not there, and whose start is not on its way either."""
        missing = containers - self.index.ids() - self.pending.keys()
        return missing - {bind.container for _, bind in self.executions.starts()} if missing else missing

    def reclaimed_free(self) -> Iterator[str]:
        """The tenants for whom a container was drained that is gone since the last whole pass."""
        return (whose for name, whose in self.reclaimed.items() if self.state(name) in (None, ContainerState.GONE))

    def forget_reclaimed(self) -> None:
        """Drop the reclaimed containers that are gone: a whole pass has dealt out their places."""
        self.reclaimed = {
            name: whose for name, whose in self.reclaimed.items() if self.state(name) not in (None, ContainerState.GONE)
        }

    def device(self, node: str, gpu: str) -> DeviceReport | None:
        report = self.nodes.get(node)
        return next((device for device in report.devices if device.id == gpu), None) if report else None

    def last_report_at(self, node: str) -> float | None:
        """When a node reported last; None if it is gone or drains."""
        report = self.nodes.get(node)
        return None if report is None or report.draining else self.seen.get(node)
