"""Decisions: one pass over all versions, from the `World` to commands. Pure and level-triggered.

    scaling_policy   how many containers each version should have, and which idle ones may be drained
    plan             where missing ones start, what is cut for them, what moves (`pilotlight_placement.plan.plan`)
    preemption       which idle containers are drained for a version without a place

Commands may be repeated: agents know container ids and epochs, and the effect of a lost command is still missing at the
next tick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pilotlight_autoscaler.plan_commands import AgentSteps, CommandContext
from pilotlight_autoscaler.plan_execution import AgentCommand, PlanStep, independent_steps
from pilotlight_autoscaler.preemption import IdleContainers, TrialBudget, choose_victims, round_robin
from pilotlight_autoscaler.scaling_policy import (
    VersionSpeed,
    VersionView,
    to_drain,
    wanted,
    wanted_by_demand,
    wanted_by_level,
)
from pilotlight_autoscaler.version_reservation import VersionReservation, WaitingVersion, next_reservation
from pilotlight_autoscaler.world import LIVE, FailedStarts, World
from pilotlight_core.model.api.curve_api import TARGET_UTILISATION
from pilotlight_core.model.messages.agent_messages import ContainerReport, Drain, Shortage, Stop
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.curves import Curves
from pilotlight_placement.explain.speeds import key_of_slice, on_slice
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.hardware.node import PlacedContainer
from pilotlight_placement.plan.commands import PlannedStart
from pilotlight_placement.plan.draft import DesiredFunction, PlanLimits
from pilotlight_placement.plan.plan import DesiredState, Plan, Shortfall, living, plan
from pilotlight_placement.plan.reservation import Reservation, reserve
from pilotlight_placement.search.decision_record import NoFit, Placement
from pilotlight_placement.search.place import place

DRAIN_MARGIN_S = 5.0
"""Beyond the function's timeout, after which no call can still run."""
ROOM_S = 2.0
"""An idle container ends within this after its drain; until then no other one is drained for the same version."""
LOAD_S = 30.0
"""The cost of a move, if no start of its function was timed."""


@dataclass(frozen=True, kw_only=True)
class AddressedCommand:
    node: str
    command: AgentCommand


@dataclass(kw_only=True)
class Decision:
    """The commands of one pass, and notes for people."""

    commands: list[AddressedCommand] = field(default_factory=list)
    executions: list[list[PlanStep]] = field(default_factory=list)
    """Plans with commands that wait for others."""
    shortages: list[Shortage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class PassOptions:
    """What a pass may do beyond starting and stopping: `force` makes room by moving, `repack` empties devices."""

    limits: PlanLimits = field(default_factory=PlanLimits)
    force: bool = True
    repack: bool = False

    @property
    def plain(self) -> PlanLimits:
        return replace(self.limits, moves=0, blocked=0, empties=0)

    @property
    def forceful(self) -> PlanLimits:
        forced = self.limits if self.force else replace(self.limits, blocked=0)
        return forced if self.repack else replace(forced, empties=0)


@dataclass(frozen=True, kw_only=True)
class PassInput:
    """The input of a pass, beside the world. `at` is in seconds, on the world's clock."""

    versions: Mapping[str, VersionRecord]
    """By id."""
    deployed: Iterable[str]
    epoch: int
    """Of the leader's lease."""
    new_id: Callable[[VersionRecord], str]
    at: float
    curves: Mapping[str, Curves] = field(default_factory=dict)
    """By version."""
    options: PassOptions = field(default_factory=PassOptions)


def views(
    world: World,
    versions: Mapping[str, VersionRecord],
    deployed: Iterable[str],
    at: float,
    speed: Callable[[str, Sequence[ContainerReport]], VersionSpeed | None] = lambda _, __: None,
) -> dict[str, VersionView]:
    """Every deployed, demanded or running version as the scaling policy sees it."""
    current = set(deployed)
    containers: dict[str, list[ContainerReport]] = {}
    for node, container in world.containers(at):
        # Containers of a draining node are left alone.
        if container.state in LIVE and container.id not in world.draining and not world.nodes[node].draining:
            containers.setdefault(container.version, []).append(container)
    pending: dict[str, int] = {}
    for bind in (*(item.bind for item in world.pending.values()), *(bind for _, bind in world.executions.starts())):
        pending[bind.version] = pending.get(bind.version, 0) + 1
    return {
        version: VersionView(
            spec=record.spec,
            deployed=version in current,
            demand=world.demand(version, at),
            containers=tuple(containers.get(version, ())),
            pending=pending.get(version, 0),
            rate=world.rate(version, at),
            speed=speed(version, containers.get(version, ())),
        )
        for version, record in versions.items()
    }


def function_of(record: VersionRecord) -> str:
    """`tenant:app.function`, the key of spread and avoidance."""
    return f"{record.tenant}:{record.app}.{record.function}"


def explain_level(record: VersionRecord, view: VersionView) -> str:
    speeds = ", ".join(f"{speed:.3g}" for speed in view.speed.there) if view.speed else ""
    there = f"; those that are there do {speeds} per second" if speeds else ""
    return (
        f"{record.ref}: {wanted_by_level(view)} containers carry {view.rate:.3g} calls per second within "
        f"{view.spec.slo.p95_ms:g} ms, used to {TARGET_UTILISATION:.0%}{there}"
    )


def without(shorts: Sequence[Shortfall], others: Sequence[Shortfall]) -> list[Shortfall]:
    """The shortfalls that are not in `others`, by identity, which is faster than comparing asks."""
    known = {id(short) for short in others}
    return [short for short in shorts if id(short) not in known]


def ask_of(record: VersionRecord, curves: Curves | None = None) -> Ask:
    """The ask of a version's container, with its known curves."""
    return Ask.of(record.spec, function=function_of(record), tenant=record.tenant, curves=curves)


class Pass:
    def __init__(self, world: World, given: PassInput) -> None:
        self._world, at, versions = world, given.at, given.versions
        self._versions = versions
        self._epoch = given.epoch
        self._new_id = given.new_id
        self._at = at
        self._options = given.options
        self._curves = given.curves
        self._where = {container.id: node for node, container in world.containers(at)}
        self._running = {container.id: container.version for _, container in world.containers(at)}
        self._leaving: set[str] = set(world.executions.containers())
        world.observe_versions(versions)
        self._fleet: Fleet = world.fleet(at)
        self._fleet.follow(world.asked)
        self._views = views(world, versions, given.deployed, at, self._speed)
        self._reservation = self._current_reservation()
        self._idle = IdleContainers(
            views=self._views, tenants={name: record.tenant for name, record in versions.items()}
        )
        self.decision = Decision()

    def _current_reservation(self) -> Reservation | None:
        """The reservation, as long as calls of its version wait."""
        reservation = self._world.reservation
        if reservation is None or reservation.version not in self._views:
            return None
        demand = self._views[reservation.version].demand
        waited_for = demand is not None and demand.queued
        return replace(reservation.kept, ask=self._ask(reservation.version)) if waited_for else None

    def run(self, only: str | None = None) -> Decision:
        """Decide for all versions, or for the one with a new demand."""
        if only is None:
            self._world.levels = {
                function_of(self._versions[name]): explain_level(self._versions[name], view)
                for name, view in self._views.items()
                if view.speed is not None and view.rate
            }
            for version in self._views:
                self._drain_surplus(version)
        asks, missing = self._missing(only)
        desired = DesiredState(wants=(), starts=tuple(missing), epoch=self._epoch, kept=self._reservation)
        made = plan(self._fleet, desired, self._at, self._options.plain)
        shorts, blocked = made.short, self._preempt_for_all(made, asks)
        helped = without(shorts, blocked)
        if only is None and ((blocked and self._options.force) or self._options.repack):
            made = self._plan_with_moves(missing, made, blocked)
            blocked = list(made.short)
        self._add_commands(made, asks)
        if only is None:
            self._world.reservation = self._next_reservation([*helped, *blocked], asks)
        for short in blocked:
            self._report_shortfall(short, asks)
        return self.decision

    def _missing(self, only: str | None) -> tuple[dict[Ask, list[str]], list[tuple[Ask, int]]]:
        """Missing containers by ask, in turn, and for each ask their versions."""
        asks: dict[Ask, list[str]] = {}
        missing = []
        for version in self._in_order(only):
            view = self._views[version]
            count = wanted(view) - view.size
            if count > 0 and wanted_by_level(view) > wanted_by_demand(view):
                self.decision.notes.append(explain_level(self._versions[version], view))
            if count > 0 and self._world.failures.get(version, FailedStarts()).retry_at <= self._at:
                ask = self._ask(version)
                asks.setdefault(ask, []).extend([version] * count)
                missing.append((ask, count))
        return asks, missing

    def _in_order(self, only: str | None) -> list[str]:
        if only is not None:
            return [only] if only in self._views else []
        waiting = {v: view.demand.oldest_ms if view.demand else 0.0 for v, view in self._views.items()}
        return sorted(self._views, key=lambda version: (-waiting[version], version))

    def _drain_surplus(self, version: str) -> None:
        for container in to_drain(self._views[version]):
            if container.id not in self._leaving:
                self._drain(container.id, self._versions[version], f"idle for {container.idle_s:.0f} s")

    def _add_commands(self, made: Plan, asks: dict[Ask, list[str]]) -> None:
        """Convert a plan to commands, and record its decisions."""
        steps = AgentSteps(context=CommandContext(epoch=self._epoch, new_id=self._new_id, drain=self._drain_command))
        outcomes = dict(made.outcomes)
        starts = [(planned.group, planned.command) for planned in made.commands]
        movers = {g: s.held.tenant for g, s in starts if isinstance(s, PlannedStart) and not s.replaces}
        for planned in made.commands:
            command = planned.command
            if isinstance(command, PlannedStart):
                if command.replaces:
                    self._world.moves.spend(self._at, movers.get(planned.group, ""))
                outcome = outcomes[command.held.container]
                record = self._version_of(command, outcome.record.ask, asks)
                self._remember(outcome, steps.start(planned, command, record), record)
            elif isinstance(command, Stop):
                steps.stop(planned, command, self._versions[self._running[command.container]])
            else:
                steps.change_device(planned, command)
        for part in independent_steps(steps.steps):
            if len(part) == 1:
                self.decision.commands.append(AddressedCommand(node=part[0].node, command=part[0].command))
            else:
                self.decision.executions.append(part)
        self.decision.notes += steps.notes

    def _version_of(self, command: PlannedStart, ask: Ask, asks: dict[Ask, list[str]]) -> VersionRecord:
        return self._versions[self._running[command.replaces] if command.replaces else asks[ask].pop(0)]

    def _remember(self, outcome: Placement | NoFit, container: str, record: VersionRecord) -> None:
        self._world.decisions.add(outcome, container, version=record.ref, at=self._at)
        if (shape := AskShape.of(outcome.record.ask)) is not None:
            self._world.asked.observe(shape, self._at)

    def _plan_with_moves(self, missing: list[tuple[Ask, int]], plain: Plan, blocked: list[Shortfall]) -> Plan:
        """The plan in which containers are moved for blocked versions, and devices emptied."""
        counts: dict[Ask, int] = {}
        for ask, count in missing:
            counts[ask] = counts.get(ask, 0) + count
        for short in without(plain.short, blocked):
            counts[short.refusal.record.ask] -= short.missing  # a drain makes room for it
        limits = self._options.forceful
        moves = self._world.moves
        limits = replace(
            limits,
            moves=min(limits.moves, moves.left(self._at)),
            empties=limits.empties if moves.allows(self._at, "") else 0,
        )
        tenants = {short.refusal.record.ask.tenant for short in blocked}
        leaving = {each.id for _, each in self._world.containers(self._at) if each.state not in LIVE}
        # Exclude pending containers, those of executions, and those that two nodes report.
        fixed = leaving | self._leaving | self._world.draining.keys() | (self._fleet.held.keys() - self._running.keys())
        desired = DesiredState(
            wants=self._movable(),
            starts=tuple(counts.items()),
            epoch=self._epoch,
            fixed=frozenset(fixed),
            waiting=frozenset(tenant for tenant in tenants if not moves.allows(self._at, tenant)),
            kept=self._reservation,
        )
        return plan(self._fleet, desired, self._at, limits)

    def _movable(self) -> tuple[DesiredFunction, ...]:
        """Every function whose containers are all of one version, at its present count."""
        by_function: dict[str, set[str]] = {}
        loads: dict[str, float] = {}
        for _, container in self._world.containers(self._at):
            if (record := self._versions.get(container.version)) is None:
                continue
            function = function_of(record)
            by_function.setdefault(function, set()).add(container.version)
            timed = sum(container.timeline.values()) / 1000.0
            loads[function] = max(loads.get(function, 0.0), timed)
        return tuple(
            DesiredFunction(ask=self._ask(min(names)), count=None, load_s=loads[function] or LOAD_S, movable=True)
            for function, names in sorted(by_function.items())
            if len(names) == 1 and living(self._fleet, function)
        )

    def _speed(self, version: str, containers: Sequence[ContainerReport]) -> VersionSpeed | None:
        """The throughput of a version's containers within its service level, if both are known."""
        level, curves = self._versions[version].spec.slo.p95_ms, self._curves.get(version)
        if level is None or curves is None:
            return None
        best = [point.throughput for key in curves.points if (point := curves.best(*key, level)) is not None]
        if not best:
            return None
        slices = [held.slice for c in containers if (held := self._fleet.held.get(c.id)) is not None]
        if len(slices) < len(containers):
            return None  # a report is ahead of the fleet: the next pass knows where they are
        points = [on_slice(curves, slice_, level) for slice_ in slices]
        if any(p is None and not curves.knows(s.type, key_of_slice(s)) for p, s in zip(points, slices, strict=True)):
            return None  # one of them has no curve
        return VersionSpeed(there=tuple(point.throughput if point else 0.0 for point in points), next=max(best))

    def _ask(self, version: str) -> Ask:
        return ask_of(self._versions[version], self._curves.get(version))

    def _preempt_for_all(self, made: Plan, asks: dict[Ask, list[str]]) -> list[Shortfall]:
        """Drain idle containers for versions without a place; the shortfalls that remain."""
        started = Counter(outcome.record.ask for name, outcome in made.outcomes if name)
        rest = {ask: names[started[ask] :] for ask, names in asks.items()}
        first, self._world.preemption_turn = self._world.preemption_turn, 0
        shorts, trials = round_robin(made.short, first), TrialBudget()
        helped: list[Shortfall] = []
        with self._fleet.trial():
            for command in (planned.command for planned in made.commands):
                if isinstance(command, PlannedStart) and not self._fleet.refusal(command.held):
                    self._fleet.hold(command.held)
            for container in self._world.lately_drained(self._at, ROOM_S):
                if container in self._fleet.held:
                    self._fleet.release(container)
            if self._reservation is not None:
                mine = [short for short in shorts if short.refusal.record.ask == self._reservation.ask]
                shorts = [short for short in shorts if short.refusal.record.ask != self._reservation.ask]
                helped += [short for short in mine if self._preempt_for(short, rest, trials)]
                if len(helped) < len(mine):
                    self._drain_reserved(self._reservation)
                reserve(self._fleet, self._reservation)
            for number, short in enumerate(shorts):
                if self._preempt_for(short, rest, trials):
                    helped.append(short)
                if trials.left <= 0:
                    self._world.preemption_turn = (
                        first + number
                    )  # the next pass begins with the versions that this one had no time for
                    break
        return without(made.short, helped)

    def _preempt_for(self, short: Shortfall, asks: dict[Ask, list[str]], trials: TrialBudget) -> bool:
        """Whether a version has a place once draining containers are gone; drains more idle ones if needed."""
        ask = short.refusal.record.ask
        version = asks[ask][0]
        view = self._views[version]
        waited_for = view.demand is not None and bool(view.demand.queued)
        if short.refusal.never or not (waited_for or view.size < view.floor):
            return False
        if not self._is_placed(ask):
            leaving = choose_victims(
                self._fleet, ask, version, self._idle, waited_for=waited_for, spared=self._leaving, trials=trials
            )
            for container, whose in leaving:
                self._drain(container.id, self._versions[whose], f"gives way to {self._versions[version].ref}")
                self._fleet.release(container.id)
                self._idle.held[self._versions[whose].tenant] -= 1
            if not leaving:
                return False
            self._is_placed(ask)
        self._idle.held[ask.tenant] += 1  # counts for the share of the versions after it
        self._report_shortfall(short, asks)
        return True

    def _drain_reserved(self, kept: Reservation) -> None:
        """Drain idle containers on reserved devices, even if that is not enough yet."""
        for container, version in self._idle.beyond_floors(waited_for=True):
            held = self._fleet.held.get(container.id)
            on = {(held.slice.node, name) for name in held.slice.ids} if held is not None else set()
            if on & kept.devices and container.id not in self._leaving:
                self._drain(container.id, self._versions[version], f"its GPU is kept for {kept.ask.function}")

    def _next_reservation(self, shorts: list[Shortfall], asks: dict[Ask, list[str]]) -> VersionReservation | None:
        """The next reservation; none for a tenant with more than an even share."""
        even = self._fleet.size / max(1, len(self._idle.held))
        greedy = {tenant for tenant, count in self._idle.held.items() if count > even}
        waiting = []
        for short in shorts:
            ask = short.refusal.record.ask
            demand = self._views[asks[ask][0]].demand
            if not short.refusal.never and demand is not None and demand.queued and ask.tenant not in greedy:
                waiting.append(WaitingVersion(version=asks[ask][0], ask=ask, waited_s=demand.oldest_ms / 1000.0))
        return next_reservation(self._world.reservation, waiting, self._fleet, self._at)

    def _is_placed(self, ask: Ask) -> bool:
        found = place(self._fleet, ask)
        if isinstance(found, NoFit):
            return False
        held = PlacedContainer(
            container=f"{ask.function}~{self._fleet.revision}", slice=found.slice, function=ask.function,
            tenant=ask.tenant, neighbours=ask.neighbours,
        )  # fmt: skip
        if not self._fleet.refusal(held):
            self._fleet.hold(held)
        return True

    def _report_shortfall(self, short: Shortfall, asks: dict[Ask, list[str]]) -> None:
        tenant = short.refusal.record.ask.tenant
        if not short.refusal.never and (spent := self._world.moves.refusal_for(self._at, tenant)):
            short = replace(short, refusal=replace(short.refusal, reason=f"{short.refusal.reason}; {spent}"))
        for version in dict.fromkeys(asks[short.refusal.record.ask]):
            self._world.decisions.add(short.refusal, version=self._versions[version].ref, at=self._at)
            self.decision.shortages.append(
                Shortage(version=version, epoch=self._epoch, reason=short.refusal.reason, never=short.refusal.never)
            )

    def _drain(self, container: str, record: VersionRecord, reason: str) -> None:
        self._leaving.add(container)
        command = self._drain_command(container, record, reason)
        self.decision.commands.append(AddressedCommand(node=self._where[container], command=command))
        self.decision.notes.append(f"{record.ref}: {container} drains: {reason}")

    def _drain_command(self, container: str, record: VersionRecord, reason: str) -> Drain:
        within_ms = (record.spec.timeout + DRAIN_MARGIN_S) * 1000.0
        return Drain(epoch=self._epoch, container=container, within_ms=within_ms, reason=reason)
