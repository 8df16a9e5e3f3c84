"""The controller process: it observes the bus, decides at each tick and edge, and sends commands while it leads.

    observe   NodeReport, Demands, Credit -> World (`NodeIntake` for what nodes say)
    decide    decide.Pass (pure)
    act       request each command from its agent; a lost one is decided again at the next tick
    advance   plans whose commands wait for others (PlanExecutions), as reports show their progress

Every command has the lease's epoch, and agents refuse a lower one. Before a container is bound, its `Binding` is
written (`BindingBook`): what is not bound gets no calls, is on no bill, and is stopped.

One that advises takes no lease: it observes and decides beside the leader, records what it would have, and sends and
writes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice

import msgspec
import structlog
from prometheus_client.core import Metric

from pilotlight_autoscaler.advice_log import log_advice
from pilotlight_autoscaler.bindings.binding_cleanup import EndedBindings
from pilotlight_autoscaler.command_sender import CommandSender
from pilotlight_autoscaler.container_stops import ContainerStops
from pilotlight_autoscaler.controller_metrics import ControllerMetrics
from pilotlight_autoscaler.curve_store import CurveStore
from pilotlight_autoscaler.explain_answers import answer
from pilotlight_autoscaler.memory_store import MemoryStore
from pilotlight_autoscaler.node_drains import NodeDrains
from pilotlight_autoscaler.node_intake import NodeIntake
from pilotlight_autoscaler.observations.decision_events import DecisionEvents
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.old_agents import OldAgents
from pilotlight_autoscaler.pass_preparation import PassPreparation
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.decision import AddressedCommand, Decision
from pilotlight_autoscaler.passes.pass_input import PassOptions
from pilotlight_autoscaler.policy.missing_starts import in_turn
from pilotlight_autoscaler.pools.open_pools import OpenPool, no_pool
from pilotlight_autoscaler.pools.pool_keeper import PoolKeeper
from pilotlight_autoscaler.registered_versions import RegisteredVersions
from pilotlight_autoscaler.repacking import Repacking
from pilotlight_autoscaler.scaling_answers import explain_scaling
from pilotlight_autoscaler.spent_budgets import SpentBudgets
from pilotlight_autoscaler.told_shortages import ToldShortages, lasting_shortage, subject_of_told
from pilotlight_core.bus import Bus, BusDown, BusError, Handler, Lease
from pilotlight_core.host.binding_book import BindingBook
from pilotlight_core.host.events.event_log import EventLog, SilentEventLog
from pilotlight_core.host.gc_tuning import collect_young
from pilotlight_core.host.registry import Registry
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import base36
from pilotlight_core.model.messages.controller_questions import ExplainPlacement, StopContainer
from pilotlight_core.model.messages.demand import Demand, Demands
from pilotlight_core.model.messages.job_messages import PlannedStarts
from pilotlight_core.model.messages.node_messages import STOP_GRACE_S, Bind, Credit, NodeReport
from pilotlight_core.model.messages.ran import Ran
from pilotlight_core.model.pipelines.pipeline import SEPARATOR
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.curve_book import CurveBook
from pilotlight_placement.plan.draft import PlanLimits

TICK_S = 0.25
SOON_S = 0.02
"""After a pass over all that had no time for all: so long until the next one, for what others have to do."""
SETTLE_S = 1.5
"""A new leader waits for every node's report (one a second) before it removes containers or reports what fits nowhere.
Until then it takes what is bound on the others for what is there."""
MAX_STOPS = 64
"""Of single containers, at a time; who asks for more gets no answer, and asks again."""
MAX_FAILED_PASSES = 8
"""After so many failed passes in a row, and without a version at fault, the process ends, to be restarted."""
LEARN_EVERY_S = 0.25
"""Interval of writing a few learnt curves."""
STORE_EVERY_S = 0.1
MEMORIES_AT_ONCE = 8
"""Of functions, that are stored each tenth of a second."""
MOST_STORED_AT_END = 1_000
RECALL_EVERY_S = 2.0
RECALLED_WITHIN_S = 60.0
"""So long a new leader removes nothing without knowing what was remembered of functions."""
TIDY_EVERY_S = 1.0
EDGES_AT_ONCE = 32
"""Versions of which one pass decides on new calls: a tenth of a second."""
ENDS_AT_ONCE = 256
"""Bindings that are ended at a time."""
INSPECTED_AT_ONCE = 10
"""Versions that a pass looks at before a pause: some milliseconds."""
SWEEP_EVERY_S = 0.05
"""Interval of ending the minutes of a few functions, and of taking over what nodes have reported."""
PAUSE_AFTER_S = 0.002
"""Of processor time that a pass over all has used since its last pause."""
PAUSE_TURNS = 4
"""Of the event loop: what has come from the bus is heard in the second or third, and decided on in the next."""
ROOM_EVERY_S = 0.5
"""Interval of looking for room by moves."""
MOVES_SHOW_S = 2.0
"""After so long reports show the last moves; until then no further ones are looked for."""

log = structlog.get_logger()


class Controller:
    """One controller process. Use as `async with Controller(...).running():`."""

    def __init__(
        self,
        bus: Bus,
        registry: Registry,
        lease: Lease,
        world: World,
        *,
        region: str,
        repacking: Repacking | None = None,
        stop_grace_s: float = STOP_GRACE_S,
        advises: bool = False,
        zone: str = "local-a",
        open_pool: OpenPool = no_pool,
        on_settled: Callable[[], None] = lambda: None,
        events: EventLog | None = None,
    ) -> None:
        self._advises = advises
        self._repacking = repacking or Repacking()
        self.world = world
        self._room_sought_at = self._moved_at = self._repacked_at = 0.0
        self._bus = bus
        self._registry = registry
        self._registered = RegisteredVersions(registry, load_s_of=world.scaling.load_s)
        self._wall = wall = self._registered.wall
        self._events = DecisionEvents(events or SilentEventLog(), lambda: lease.valid(time.monotonic()))
        self._budgets = SpentBudgets(bus, registry, self._registered.wake, self._events.note_money)
        self._stops = ContainerStops(bus, world, region=region, stop_grace_s=stop_grace_s)
        self._stopping = 0
        self._memories = MemoryStore(bus, region=region, is_erased=registry.is_erased)
        self._curves = CurveStore(registry)
        self._bindings = BindingBook(bus, region=region)
        self._ended = EndedBindings()
        self._told = ToldShortages()
        drains = NodeDrains(registry.nodes(), grace_s=stop_grace_s)
        self.intake = NodeIntake(world, self._bindings, record_of=registry.node_nowait, drains=drains)
        registry.on_change.append(self.intake.on_record)
        self._region = region
        self._old_agents = OldAgents(bus, self._on_credit, region=region)
        self._lease = lease
        self._edges: asyncio.Queue[tuple[str, str]] = asyncio.Queue(maxsize=10_000)
        self._on_settled: Callable[[], None] | None = on_settled
        """Called once, when the fleet is known for the first time."""
        self._versions = PassPreparation(
            world=world, registered=self._registered, book=CurveBook(registry), new_id=self._new_id,
            stop_grace_s=stop_grace_s, pause=self._pause, unfunded=self._budgets.unfunded,
        )  # fmt: skip
        self._pools = PoolKeeper(
            world, registry, lease, open_pool, region=region, zone=zone, spot_zones=self.intake.spot_zones, wall=wall
        )  # fmt: skip
        self._failed_passes = 0  # in a row
        self._started = 0
        self._leading_since = self._listening_since = 0.0
        self._recalls = False
        """Whether it knows what leaders before it have stored of functions: what it learns is not stored before."""
        self._paused_at = 0.0
        self._wall_offset = 0.0
        """Unix seconds less those of the world's clock: a step of the wall clock changes nothing while one leads."""
        self._tasks: asyncio.TaskGroup
        self.metrics = ControllerMetrics()
        self._sender = CommandSender(
            bus, registry, lease, world, self._bindings, region=region, count=self.metrics.command_sent
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        handlers: dict[str, Handler] = {
            subjects.beat(self._region): self._on_report,
            subjects.demand(self._region): self._on_demand,  # of a gateway of 0.1
            subjects.demands(self._region): self._on_demand,
            subjects.planned(self._region): self._on_demand,
            subjects.ran(self._region): self._on_ran,
        }
        if self._advises:
            handlers[subjects.advice(self._region)] = self._on_question
        else:
            handlers[subjects.explain(self._region)] = self._on_question
            handlers[subjects.stop_container(self._region)] = self._on_stop
        readers = {subjects.beat(self._region): bytes}  # whose they are has to be known to read them
        async with (
            self._bindings,
            self._budgets,
            self._bus.listening(handlers, readers=readers),
            asyncio.TaskGroup() as tasks,
        ):
            self._listening_since = time.monotonic()
            self._tasks = self._sender.tasks = tasks
            leading = (self._lead, self._learn, self._remember, self._tidy, self._pools.run)
            jobs = (self._tick, self._edge, self._sweep, *((self._advise,) if self._advises else leading))
            loops = [tasks.create_task(job()) for job in jobs]
            yield
            for loop in loops:
                loop.cancel()
            if self.leads:
                await self._store_memories(MOST_STORED_AT_END)
        self._registered.close()
        await self._lease.release()

    @property
    def leads(self) -> bool:
        return self._lease.valid(time.monotonic())

    @property
    def decides(self) -> bool:
        """Whether it leads, or advises who leads."""
        return self._advises or self.leads

    def collect_metrics(self) -> Iterator[Metric]:
        """A `MetricSource`."""
        yield from self.metrics.collect(self.world, time.monotonic(), leads=self.leads, decides=self.decides)
        yield from self._pools.counts.collect()

    def _on_report(self, subject: str, message: object, _: str) -> None:
        report = self.intake.read(subject, message) if isinstance(message, bytes) else None
        if report is None:
            return
        if isinstance(report, NodeReport):
            self._old_agents.on_report(report)
        if self.world.executions.concern(report.node) and self.leads:
            self._sender.advance_plans(time.monotonic(), report.node)

    def _on_credit(self, subject: str, message: object, _: str) -> None:
        if isinstance(message, Credit):
            self.intake.on_credit(subject, message)

    def _on_ran(self, subject: str, message: object, _: str) -> None:
        if isinstance(message, Ran):
            self.intake.on_ran(subject, message)

    def _on_question(self, _: str, message: object, reply: str) -> None:
        # Who decides knows why, and the gateway waits for one answer.
        if isinstance(message, ExplainPlacement) and reply and self.decides:
            at = time.monotonic()
            explained = answer(self.world, message, at, self._wall(), self._ref_of)
            if message.scaling:
                scaling = explain_scaling(self.world, message.function, message.at, at + self._wall_offset)
                explained = msgspec.structs.replace(explained, scaling=msgspec.json.encode(scaling))
            with contextlib.suppress(BusDown):
                self._bus.publish_nowait(reply, explained)

    def _on_stop(self, _: str, message: object, reply: str) -> None:
        if isinstance(message, StopContainer) and reply and self.leads and self._stopping < MAX_STOPS:
            self._stopping += 1
            self._tasks.create_task(self._stop(message, reply))

    async def _stop(self, asked: StopContainer, reply: str) -> None:
        try:
            answered = await self._stops.stop(asked, self._lease.epoch)
        finally:
            self._stopping -= 1
        with contextlib.suppress(BusDown):
            self._bus.publish_nowait(reply, answered)

    def _ref_of(self, version: str) -> str:
        record = self._registry.version(version)
        return record.ref if record is not None else version

    def _on_demand(self, _: str, message: object, __: str) -> None:
        at = time.monotonic()
        if isinstance(message, PlannedStarts):
            self.world.planned.on_told(message, at)
        elif isinstance(message, Demands):
            for demand in message.items:
                self._take_demand(demand, at)
        elif isinstance(message, Demand):
            self._told.note_old_gateway(at)
            self._take_demand(message, at)

    def _take_demand(self, demand: Demand, at: float) -> None:
        self.world.on_demand(demand, at)
        if demand.refused_calls or demand.late:
            self.metrics.on_demand(demand)
        if demand.edge and not self._edges.full():
            self._edges.put_nowait((demand.version, demand.tenant))

    async def _lead(self) -> None:
        self.world.wishes.on_change = self._events.scaled
        while True:
            await self._lease.acquire()
            self.world.executions.clear()  # of an earlier lease
            log.info("leading", epoch=self._lease.epoch)
            await self._begin()
            await self._lease.lost.wait()
            self.world.executions.clear()
            log.warning("lease lost")

    async def _advise(self) -> None:
        self.world.wishes.on_change = log_advice
        await self._begin()
        log.info("advising: what is decided is recorded, and nothing of it done")

    async def _begin(self) -> None:
        self._leading_since = time.monotonic()
        self._wall_offset = self._wall() - self._leading_since
        self._recalls = False
        while self.decides and not self._recalls:
            try:
                self.world.scaling.restore(await self._memories.read(self._wall(), self.world.scaling.knows))
                self._recalls = True
            except (BusError, TimeoutError) as error:
                log.warning("what was remembered of functions is read again", error=repr(error))
                await asyncio.sleep(RECALL_EVERY_S)

    async def _tick(self) -> None:
        while True:
            goes_on = self._versions.active.put_off and not self._failed_passes
            await asyncio.sleep(SOON_S if goes_on else TICK_S)
            if self.decides:
                await self._pass(None)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            if self.decides:
                at = time.monotonic()
                self.world.scaling.sweep(at + self._wall_offset)
                with self.metrics.sweep():  # a pass does the same, and says with which version it went wrong
                    self.world.take_over(at)  # what nodes have reported is there when calls wait for a place
                collect_young()  # twenty times a second, so that nobody waits for it

    async def _learn(self) -> None:
        """Separate from the ticks, which must not wait for slow writes."""
        while True:
            await asyncio.sleep(LEARN_EVERY_S)
            if self.leads:
                self.world.follow_demand(time.monotonic())
                await self._curves.write(self.world.learner, time.monotonic(), time.time())

    async def _remember(self) -> None:
        while True:
            await asyncio.sleep(STORE_EVERY_S if self.world.scaling.changed else TICK_S)
            if self.leads:
                await self._store_memories()

    async def _tidy(self) -> None:
        """End the bindings of containers that are gone, and containers without a binding."""
        while True:
            await asyncio.sleep(TIDY_EVERY_S)
            at = time.monotonic()
            if not self.leads or at - self._leading_since < SETTLE_S:
                continue
            for node, stop in self.intake.stops(self._lease.epoch, at)[: self._sender.room]:
                self._sender.start_sending(AddressedCommand(node=node, command=stop), at)
            absent = [self._bindings.bound[name] for name in self.world.absent(self._bindings.bound.keys())]
            ended = self._ended.due(absent, self.world.nodes, at)[:ENDS_AT_ONCE]
            with contextlib.suppress(BusError):  # it is found again in a second
                await asyncio.gather(*(self._bindings.end(binding) for binding in ended))

    async def _store_memories(self, most: int = MEMORIES_AT_ONCE) -> None:
        if not self._recalls:
            return
        left = await self._memories.write(self.world.scaling.take_changed(most))
        self.world.scaling.changed.update(dict.fromkeys(left))

    async def _edge(self) -> None:
        waiting: dict[str, str] = {}
        """Version -> tenant."""
        while True:
            arrived = [] if waiting else [await self._edges.get()]
            waiting |= dict([*arrived, *(self._edges.get_nowait() for _ in range(self._edges.qsize()))])
            versions = set(islice(in_turn(waiting, waiting.__getitem__), EDGES_AT_ONCE))
            waiting = {version: tenant for version, tenant in waiting.items() if version not in versions}
            if self.decides:
                began = time.monotonic()
                # They share a pass, with a pause behind it: endless edges must not keep others from their turn.
                await self._pass(versions)
                await asyncio.sleep(time.monotonic() - began)

    async def _pass(self, only: Collection[str] | None) -> None:
        """One pass; after a failure the versions at fault are quarantined for the next ones."""
        began = time.monotonic()
        try:
            await self._decide(only)
        except Exception as error:
            self._versions.active.settled.clear()  # what has changed since the last pass is lost with this one
            self._failed_passes += 1
            self.metrics.failed_passes += 1
            at = time.monotonic()
            faults = self._versions.find_faults(at, at + self._wall_offset)
            for version, fault in faults.items():
                log.exception("a version is set aside: nothing can be decided on it", version=version, exc_info=fault)
            if self._versions.quarantine.is_in_vain and self._failed_passes >= MAX_FAILED_PASSES:
                raise
            log.warning("a pass went wrong", error=repr(error))
        else:
            self._failed_passes = 0
            self.metrics.pass_ended(time.monotonic() - began, whole=only is None)

    async def _decide(self, only: Collection[str] | None) -> None:
        at = time.monotonic()
        whole = only is None
        if whole:
            self._paused_at = time.thread_time()
            self.world.forget(at)  # new calls do not wait for it
            self._told.forget(at)
        is_new = at - self._listening_since < SETTLE_S
        self.world.note_unheard(self._bindings.not_on(self.world.nodes) if is_new else ())
        options = self._options(at, whole=whole)
        if only is None:
            due = await self._versions.due(at, room=options.force)
            only = await self._versions.take_first(due, await self._inspect(due.others, options), at)
            self.world.refresh_refusals(self._new_pass(only, options, at).ask, at)  # before further ones are refused
            await self._pause()
        else:
            await self._versions.read(only, at)
        if not self.decides:
            return  # another process may lead by now
        at = time.monotonic()
        made = self._new_pass(only, options, at)
        if self._advises:
            made.note_wishes(None if whole else only)
            self.metrics.decided(made.sizes)
            return
        decision = made.run(None if whole else only)
        self.metrics.decided(made.sizes)
        if whole:
            self.metrics.keep(self._versions.active.records.keys(), refused=len(self.world.refusals))
            self._moved_at = at if options.force and decision.executions else self._moved_at
        if not self._is_settled(at):
            decision.commands = [sent for sent in decision.commands if isinstance(sent.command, Bind)]
            decision.shortages = [shortage for shortage in decision.shortages if not shortage.never]
        for lost in self.world.lost_binds(at):
            decision.commands.append(AddressedCommand(node=lost.node, command=lost.bind))
        decision.shortages = [self.world.hopes.with_hope(each, at + self._wall_offset) for each in decision.shortages]
        self._act(decision, at)
        if self._is_settled(at) and self._on_settled is not None:
            self._on_settled()
            self._on_settled = None

    async def _inspect(self, versions: Collection[str], options: PassOptions) -> set[str]:
        """Those of the versions of which something is to change. In between new calls have their turn."""
        found: set[str] = set()
        left = list(versions)
        while left and self.decides:
            some, at = left[-INSPECTED_AT_ONCE:], time.monotonic()
            await self._versions.read(some, at)
            made = self._new_pass((), options, at)
            found.update(made.inspect(some))
            self.metrics.decided(made.sizes)
            del left[-INSPECTED_AT_ONCE:]
            await self._pause()
        return found

    async def _pause(self) -> None:
        """Let what has come from the bus be heard, and new calls be decided on, if they have waited for a while."""
        if time.thread_time() - self._paused_at >= PAUSE_AFTER_S:
            for _ in range(PAUSE_TURNS):
                await asyncio.sleep(0)
            self._paused_at = time.thread_time()

    def _new_pass(self, decided: Collection[str], options: PassOptions, at: float) -> Pass:
        wall = at + self._wall_offset
        return Pass(self.world, self._versions.given(decided, options, epoch=self._lease.epoch, at=at, wall=wall))

    def _is_settled(self, at: float) -> bool:
        """Whether all nodes have had the time to report, and what leaders before this one knew is read."""
        return at - self._leading_since >= (SETTLE_S if self._recalls else RECALLED_WITHIN_S)

    def _options(self, at: float, *, whole: bool) -> PassOptions:
        """The moves that this pass may make: at intervals, and only when all nodes have reported."""
        if not self._is_settled(at):
            return PassOptions(limits=PlanLimits(switches=0), force=False)
        force = whole and at >= max(self._room_sought_at + ROOM_EVERY_S, self._moved_at + MOVES_SHOW_S)
        repack = whole and 0.0 < self._repacking.every_s <= at - self._repacked_at
        self._room_sought_at = at if force else self._room_sought_at
        self._repacked_at = at if repack else self._repacked_at
        limits = PlanLimits(min_residency_s=self._repacking.min_residency_s)
        return PassOptions(limits=limits, force=force, repack=repack)

    def _new_id(self, record: VersionRecord) -> str:
        # Deterministic in (leader's epoch, ordinal): two leaders never make the same id, one never makes it twice.
        self._started += 1
        name = record.function.replace(SEPARATOR, "-")[:24]
        return f"ctr_{name}_{base36(self._lease.epoch)}_{base36(self._started)}"

    def _act(self, decision: Decision, at: float) -> None:
        self._events.decided(decision.notes)
        self.metrics.lost_nodes += self._events.lost(self.world.lost)
        lasting = partial(lasting_shortage, self.world, at + self._wall_offset, self._is_settled(at))
        for told in self._told.messages(decision.shortages, at, lasting, self.world.hopes.take_changed()):
            with contextlib.suppress(BusError):  # it is repeated at the next tick
                self._bus.publish_nowait(subject_of_told(told, self._region), told)
        for sent in decision.commands[: self._sender.room]:
            self._sender.start_sending(sent, at)
        refused = sum(not self.world.executions.add(steps) for steps in decision.executions)
        if refused:
            log.info("plans wait for those under way", plans=refused)
        self._sender.advance_plans(at)
