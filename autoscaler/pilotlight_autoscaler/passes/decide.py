"""Decisions: one pass over all versions, from the `World` to commands. Pure and level-triggered.

    scaling_policy   how many containers each version should have, and which idle ones may be drained
    plan             where missing ones start, what is cut for them, what moves (`pilotlight_placement.plan.plan`)
    preemption       which idle containers are drained for a version without a place
    tenant_rooms     how many more containers each tenant may have

Commands may be repeated: agents know container ids and epochs, and the effect of a lost command is still missing at the
next tick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pilotlight_autoscaler.observations.world import LIVE, World
from pilotlight_autoscaler.passes.version_views import ask_of, explain_level, function_of, holders, views
from pilotlight_autoscaler.plans.plan_commands import AgentSteps, CommandContext
from pilotlight_autoscaler.plans.plan_execution import AgentCommand, PlanStep, independent_steps
from pilotlight_autoscaler.policies.preemption import IdleContainers, TrialBudget, choose_victims, round_robin
from pilotlight_autoscaler.policies.scaling_policy import (
    VersionSpeed,
    VersionView,
    purpose_of,
    to_drain,
    wanted,
    wanted_by_demand,
    wanted_by_level,
)
from pilotlight_autoscaler.policies.tenant_rooms import LimitedVersion, LimitsOf, TenantRooms, give_way, unlimited
from pilotlight_autoscaler.policies.version_reservation import VersionReservation, WaitingVersion, next_reservation
from pilotlight_core.model.messages.node_messages import STOP_GRACE_S, ContainerReport, Drain, Shortage, Stop
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.curves import Curves
from pilotlight_placement.explain.speeds import key_of_slice, on_slice
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.plan.commands import PlannedStart
from pilotlight_placement.plan.draft import DesiredFunction, PlanLimits
from pilotlight_placement.plan.plan import DesiredState, Plan, Shortfall, living, plan
from pilotlight_placement.plan.reservation import Reservation, missing_host, reserve
from pilotlight_placement.search.decision_record import DecisionRecord, NoFit, Placement
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
    shut_down: Mapping[str, str] = field(default_factory=dict)
    """The versions of which nothing should run, and why."""
    limits_of: LimitsOf = unlimited
    """By tenant."""
    weight_of: Callable[[str], float] = lambda _: 1.0
    """By tenant: its share where several wait."""
    floors: Mapping[str, int] = field(default_factory=dict)
    """By version, where the tenant's limit allows less than the spec's."""
    stop_grace_s: float = STOP_GRACE_S
    """How long calls of versions that are shut down may go on."""
    options: PassOptions = field(default_factory=PassOptions)


def without(shorts: Sequence[Shortfall], others: Sequence[Shortfall]) -> list[Shortfall]:
    """The shortfalls that are not in `others`, by identity, which is faster than comparing asks."""
    known = {id(short) for short in others}
    return [short for short in shorts if id(short) not in known]


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
        self._shut_down = given.shut_down
        self._stop_grace_s = given.stop_grace_s
        self._views = views(
            world, versions, given.deployed, at, self._speed, shut_down=given.shut_down, floors=given.floors
        )
        self._limits_of = given.limits_of
        self._rooms = TenantRooms(given.limits_of, holders(world, versions, at), given.weight_of)
        self._limited: list[LimitedVersion] = []
        self._reservation = self._current_reservation()
        self._idle = IdleContainers(
            views=self._views, tenants={name: record.tenant for name, record in versions.items()}
        )
        self._started = Counter[str]()
        self.decision = Decision()

    @property
    def views(self) -> Mapping[str, VersionView]:
        """The versions as it sees them."""
        return self._views

    def _current_reservation(self) -> Reservation | None:
        """The reservation, as long as calls of its version wait."""
        reservation = self._world.reservation
        if reservation is None or reservation.version not in self._views:
            return None
        demand = self._views[reservation.version].demand
        waited_for = demand is not None and demand.waiting
        return replace(reservation.kept, ask=self._ask(reservation.version)) if waited_for else None

    def run(self, only: str | None = None) -> Decision:
        """Decide for all versions, or for the one with a new demand."""
        if only is None:
            self._world.levels = {
                function_of(self._versions[name]): explain_level(self._versions[name], view)
                for name, view in self._views.items()
                if view.speed is not None and view.rate
            }
            self._end_shut_down()
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
        for limited in self._limited:
            self._report_limit(limited)
        return self.decision

    def _missing(self, only: str | None) -> tuple[dict[Ask, list[str]], list[tuple[Ask, int]]]:
        """Missing containers by ask, in turn, and for each ask their versions."""
        asks: dict[Ask, list[str]] = {}
        missing = []
        short = self._short(only)
        backoff = self._world.backoff
        delayed = backoff.refused(short, self._at)
        for version in self._in_order(short.keys() - delayed):
            # One that fails is tried by one container, however many should be there.
            allowed = self._allowed(version, 1 if backoff.is_failing(version) else short[version])
            if allowed > 0:
                backoff.tried(version, self._at)
                ask = self._ask(version)
                asks.setdefault(ask, []).extend([version] * allowed)
                missing.append((ask, allowed))
        return asks, missing

    def _allowed(self, version: str, wanted: int) -> int:
        """How many of the missing containers the tenant's limits allow; the rest is noted."""
        record = self._versions[version]
        allowed, reached = self._rooms.take(record.tenant, record.spec, wanted)
        if reached is not None:
            self._limited.append(LimitedVersion(version=version, missing=wanted - allowed, reached=reached))
        return allowed

    def _short(self, only: str | None) -> dict[str, int]:
        """The versions that should have more containers, and how many."""
        short = {}
        for version in self._views.keys() if only is None else self._views.keys() & {only}:
            view = self._views[version]
            count = wanted(view) - view.size
            if count > 0 and wanted_by_level(view) > wanted_by_demand(view):
                self.decision.notes.append(explain_level(self._versions[version], view))
            if count > 0:
                short[version] = count
        return short

    def _in_order(self, versions: Iterable[str]) -> list[str]:
        """The one that has waited longest first, of the tenant that holds least for its weight."""
        waiting = {name: view.demand.oldest_ms if view.demand else 0.0 for name, view in self._views.items()}
        ordered = sorted(versions, key=lambda version: (-waiting[version], version))
        return self._rooms.in_turn((version, self._versions[version].tenant) for version in ordered)

    def _end_shut_down(self) -> None:
        """End the containers of versions that are shut down, and their waiting calls."""
        nodes = self._world.nodes
        there = ((node, each) for node, each in self._world.containers(self._at) if not nodes[node].draining)
        for node, container in self._world.shutdowns.due(self._shut_down, there, self._at):
            why = self._shut_down[container.version]
            within_ms = self._stop_grace_s * 1000.0
            command = Drain(epoch=self._epoch, container=container.id, within_ms=within_ms, reason=why)
            self._leaving.add(container.id)
            self.decision.commands.append(AddressedCommand(node=node, command=command))
            self.decision.notes.append(f"{container.id} ends within {self._stop_grace_s:g} s: {why}")
        for version, why in self._shut_down.items():
            view = self._views.get(version)
            if view is not None and view.demand is not None and view.demand.queued:
                self.decision.shortages.append(
                    Shortage(version=version, epoch=self._epoch, reason=why, never=True, shut_down=True)
                )

    def _drain_surplus(self, version: str) -> None:
        for container in to_drain(self._views[version]):
            if container.id not in self._leaving:
                self._drain(container.id, self._versions[version], f"idle for {container.idle_s:.0f} s")

    def _add_commands(self, made: Plan, asks: dict[Ask, list[str]]) -> None:
        """Convert a plan to commands, and record its decisions."""
        context = CommandContext(
            epoch=self._epoch, new_id=self._new_id, drain=self._drain_command, limits_of=self._limits_of
        )
        steps = AgentSteps(context=context)
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
                purpose = Purpose.MOVE if command.replaces else self._purpose(record.id)
                self._remember(outcome, steps.start(planned, command, record, purpose), record)
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

    def _purpose(self, version: str) -> Purpose:
        self._started[version] += 1
        return purpose_of(self._views[version], self._started[version] - 1)

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
        waited_for = view.demand is not None and bool(view.demand.waiting)
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
        """Drain idle containers on reserved devices and on hosts that are short, even if that is not enough yet."""
        places = self._fleet.places
        short = {name for name in kept.nodes if name in places and missing_host(places[name], kept.ask)}
        for container, version in self._idle.beyond_floors(waited_for=True):
            held = self._fleet.held.get(container.id)
            on = {(held.slice.node, name) for name in held.slice.ids} if held is not None else set()
            in_the_way = on & kept.devices or any(node in short for node, _ in on)
            if in_the_way and container.id not in self._leaving:
                self._drain(container.id, self._versions[version], f"its place is kept for {kept.ask.function}")

    def _next_reservation(self, shorts: list[Shortfall], asks: dict[Ask, list[str]]) -> VersionReservation | None:
        """The next reservation; none for a tenant with more than an even share."""
        even = self._fleet.size / max(1, len(self._idle.held))
        greedy = {tenant for tenant, count in self._idle.held.items() if count > even}
        waiting = []
        for short in shorts:
            ask = short.refusal.record.ask
            demand = self._views[asks[ask][0]].demand
            if not short.refusal.never and demand is not None and demand.waiting and ask.tenant not in greedy:
                waiting.append(WaitingVersion(version=asks[ask][0], ask=ask, waited_s=demand.oldest_ms / 1000.0))
        return next_reservation(self._world.reservation, waiting, self._fleet, self._at)

    def _is_placed(self, ask: Ask) -> bool:
        found = place(self._fleet, ask)
        if isinstance(found, NoFit):
            return False
        held = found.held(f"{ask.function}~{self._fleet.revision}")
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

    def _report_limit(self, limited: LimitedVersion) -> None:
        """Report a limit of the tenant; for calls that wait, its own idle containers give way."""
        version, record = limited.version, self._versions[limited.version]
        view = self._views[version]
        if view.demand is not None and view.demand.queued:
            self._make_own_room(limited)
        decided = DecisionRecord(ask=self._ask(version), revision=self._fleet.standing)
        refusal = NoFit(reason=limited.reason, never=False, record=decided, by_limit=True)
        self._world.decisions.add(refusal, version=record.ref, at=self._at)
        self.decision.shortages.append(Shortage(version=version, epoch=self._epoch, reason=limited.for_callers))

    def _make_own_room(self, limited: LimitedVersion) -> None:
        """Drain idle containers of the tenant's other versions, unless enough are leaving already."""
        leaving = self._leaving | self._world.draining.keys()
        going = [each for _, each in self._world.containers(self._at) if each.id in leaving]
        idle = self._idle.beyond_floors(waited_for=True)
        for container, version in give_way(limited, idle, going, self._versions):
            reason = f"gives way to {self._versions[limited.version].ref}: {limited.reason}"
            self._drain(container, self._versions[version], reason)

    def _drain(self, container: str, record: VersionRecord, reason: str) -> None:
        self._leaving.add(container)
        command = self._drain_command(container, record, reason)
        self.decision.commands.append(AddressedCommand(node=self._where[container], command=command))
        self.decision.notes.append(f"{record.ref}: {container} drains: {reason}")

    def _drain_command(self, container: str, record: VersionRecord, reason: str) -> Drain:
        within_ms = (record.spec.timeout + DRAIN_MARGIN_S) * 1000.0
        return Drain(epoch=self._epoch, container=container, within_ms=within_ms, reason=reason)
