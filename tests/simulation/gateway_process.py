"""A gateway's process in the simulation: the real drivers of calls and limits, over a port of the simulated world.

What is not under test stands in for it here: callers, the lease, and the writing of shards' records.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from msgspec import UNSET

from pilotlight_core.bus import BusDown, Handler
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.limiting import LimitAnswer, LimitAsk, LimitEnd, LimitVerdict
from pilotlight_core.model.messages.link_messages import LinkHello
from pilotlight_core.model.messages.scheduling import AskCall
from pilotlight_core.model.spec import FunctionSpec, MethodSpec, Mode, Priority, VersionRecord
from pilotlight_core.model.streams.resuming import Resumable
from pilotlight_core.model.subjects import SHARDS, shard_of
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.call_drivers import CallDrivers
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.cluster.agent_ends import AgentEnds
from pilotlight_gateway.cluster.driver_port import NEVER, SOON, Driver
from pilotlight_gateway.cluster.shard_plan import (
    BeginShard,
    GatewayMember,
    LeaveShard,
    MoveShard,
    ShardRecord,
    TakeShard,
    heir_of,
    step_of,
)
from pilotlight_gateway.cluster.shard_table import ShardTable
from pilotlight_gateway.cluster.shards import ShardParticipant
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.home.home import QueueLimits
from pilotlight_gateway.jobs.job_service import JobOptions
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.limit_driver import LimitDriver
from pilotlight_gateway.limits.limit_policy import LimitPolicy
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.simulation.agent import FUNCTIONS, SimAgent
from tests.simulation.board import Board, SimLease
from tests.simulation.job_side import JobSide
from tests.simulation.promises import Fate
from tests.simulation.sim_link import link
from tests.simulation.stream_server import StreamServer
from tests.simulation.world import KNOWN_AFTER, REGION, Mail, Process, World

AT_MOST_LATE = 0.9
"""Seconds that two messages need at most, one after the other."""
CALM_S = 2.0
"""How long the gateways must have been the same before a shard moves to its heir."""
LOOK_S = 0.25
LINK_S = 1.0
RESTART_S = 0.3
TOGETHER = 2
"""Events after which a turn is taken early, which so few calls would hardly bring otherwise."""


class SimPort:
    """A `DriverPort` of a process: its bus, its clock, and its alarms, which die with it."""

    def __init__(self, process: GatewayProcess) -> None:
        self._process = process
        self.turn: Callable[[], None] = lambda: None
        self._soon = self._in_turn = False
        self._events = 0
        self._timer_at = NEVER

    @property
    def connected(self) -> bool:
        return not self._process.is_aware

    def send(self, subject: str, message: Any, *, reply: str = "") -> None:
        if self._process.is_aware:
            raise BusDown("it is cut off, and knows it")
        self._process.publish(subject, message, reply)

    def clock(self) -> float:
        return self._process.clock

    def wake_at(self, instant: float) -> None:
        if instant == SOON:
            if not self._soon:
                self._soon = True
                self._process.later(0.0, self._take_soon)
        elif instant < self._timer_at:
            self._timer_at = instant
            self._process.later(max(0.001, instant - self.clock()), partial(self._take_timed_turn, instant))

        self._events += 1

    def take_turn_if_many(self) -> None:
        if self._soon and not self._in_turn and self._process.world.has_links and self._events >= TOGETHER:
            self._take_turn()

    def _take_timed_turn(self, instant: float) -> None:
        if instant == self._timer_at:  # an earlier one has not taken its place
            self._timer_at = NEVER
            if not self._soon:
                self._soon = True
                self._take_turn()

    def _take_soon(self) -> None:
        if self._soon:
            self._take_turn()

    def _take_turn(self) -> None:
        self._in_turn = True
        try:
            self.turn()
        finally:
            self._soon = self._in_turn = False
            self._events = 0


class SimCall(InFlightCall):
    """A call whose caller writes down what it hears."""

    def __init__(self, call: PreparedCall, process: GatewayProcess, at: float) -> None:
        super().__init__(call, shard_of(call.function), Origin(call, process.instance, at))
        self.process = process

    def report_stage(self, name: str, ms: float, detail: Mapping[str, object]) -> None:
        pass

    def relay_chunks(self, seq: int, data: tuple[bytes, ...]) -> None:
        for number in range(seq, seq + len(data)):
            self.process.world.promises.relayed(self.call.call_id, number)
        size = sum(map(len, data))
        self.process.later(0.0, lambda: self.process.drivers.origins.was_read(self, len(data), size))

    def finish(self, result: CallResult) -> None:
        world = self.process.world
        world.note("ANSWERED", self.call.call_id)
        world.promises.answered(self.call.call_id, result, world.now, self.process.woke_at)
        self._leave()

    def fail(self, error: PilotlightError) -> None:
        world = self.process.world
        self.error = error
        world.note("FAILS", self.call.call_id, error.wire_code, error.detail)
        world.promises.failed(self.call.call_id, error, world.now, self.process.woke_at)
        self._leave()

    def _leave(self) -> None:
        self.process.later(0.0, lambda: self.process.drivers.origins.end(self))


class GatewayProcess(Process):
    """One gateway; killed, it begins anew with nothing."""

    def __init__(
        self, world: World, name: str, board: Board, policy: LimitPolicy | None, server: StreamServer | None
    ) -> None:
        """`policy` is every tenant's; None: nothing is limited. `server` keeps jobs; None: there are none."""
        super().__init__(world, name)
        self._board = board
        self._policy = policy
        self._server = server
        self._numbers = itertools.count(1)
        # Agents fence calls by their home's epoch; limits hold as long as nobody acts without a lease.
        self._overstays = world.rng.choice((0.0, 0.0, 0.0, 2.0, 6.0)) if policy is None else 0.0
        self._notices = world.rng.random() < 0.5
        """Whether it sees at once that it is cut off; else what it sends is lost."""
        self.is_aware = False
        rng = world.link_rng
        self.neighbours = {f"agent{n}" for n in range(2) if world.has_links and rng.random() < 0.7}
        """The agents of its machine."""
        self.links_gateways = world.has_links and world.gateways_link
        """Whether it shares its machine with the other gateways."""

    def boot(self) -> None:
        self.instance = f"{self.name}-{self.life}"
        self.is_aware = False
        self._seen = (-1, 0, False)
        """The state of the board, of our lease, and whether it was calm, when we looked last."""
        self.lease = SimLease(self._overstays)
        self.table = ShardTable(self.instance, self.lease)
        self._handlers: dict[str, Handler] = {}
        self._prefixes: dict[str, Handler] = {}
        self.usages: dict[str, CallUsage] = {}
        port = SimPort(self)
        bodies = LargeBodies(url="", budget=ByteBudget(limit=10**6))
        self.fleet = FleetView()
        self.drivers = CallDrivers(
            port,
            self.table,
            self.fleet,
            bodies,
            self.world.bindings,
            region=REGION,
            gateway=self.instance,
            limits=QueueLimits(),
        )
        self._participants: dict[str, ShardParticipant] = {"calls": self.drivers.homes}
        self._drive(port, self.drivers)
        self.limits: LimitDriver | None = None
        if self._policy is not None:
            policy, port = self._policy, SimPort(self)
            self.limits = LimitDriver(
                port, self.table, lambda *_: policy, lambda _: None, region=REGION, gateway=self.instance
            )
            self._participants["limits"] = self.limits
            self._drive(port, self.limits)
        self.jobs: JobSide | None = None
        if self._server is not None:
            self.jobs = JobSide(self, self._server, _registry(), self._policy)
            self._participants["jobs"] = self.jobs.jobs.dispatcher
            self.drivers.homes.backlog_of = self.jobs.jobs.dispatcher.backlog
        self.ends = AgentEnds(self.drivers.links, self.drivers)
        if self.neighbours:
            self.every(LINK_S, self._link)
        if self.links_gateways:
            self.every(LINK_S, self._link_gateways)
        self.every(0.9, self._renew)
        self.every(LOOK_S, self._look)

    def _do(self, do: Callable[[], None]) -> None:
        if self.jobs is None or not self.alive or self.paused:
            super()._do(do)
        else:
            self.jobs.loop.turn(do)

    def _link(self) -> None:
        """Look for agents of the machine that have no link, as `LinkDialer` does."""
        self.ends.tick()
        linked = set(self.ends.agents())
        for report in self.fleet.reports(self.clock):
            agent = self.world.processes[report.node]
            if report.node not in self.neighbours or (report.node, report.instance) in linked:
                continue
            if isinstance(agent, SimAgent) and agent.alive and agent.instance == report.instance:
                hello = LinkHello(
                    link=f"{self.instance}.{self.next_number()}", gateway=self.instance, node=report.node,
                    instance=report.instance,
                )  # fmt: skip
                self.ends.begin(link(self, self.ends, agent, agent.ends), hello)

    def _link_gateways(self) -> None:
        """The same for gateways."""
        ends = self.drivers.peers
        ends.accepted.tick()
        ends.dialled.tick()
        linked = set(ends.dialled.agents())
        for instance in self.table.others():
            other = self.world.processes[instance.rpartition("-")[0]]
            if not isinstance(other, GatewayProcess) or not other.links_gateways or ("", instance) in linked:
                continue
            if other.alive and other.instance == instance:
                name = f"{self.instance}.{self.next_number()}"
                hello = LinkHello(link=name, gateway=self.instance, node="", instance=instance)
                ends.dialled.begin(link(self, ends.dialled, other, other.drivers.peers.accepted), hello)

    def next_number(self) -> int:
        """A number that no life of it has had."""
        return next(self._numbers)

    def died(self) -> None:
        self.world.promises.gateway_died(self.name)

    def cut(self) -> None:
        """Nothing reaches it, and nothing that it sends arrives."""
        self.world.cut_off.add(self.name)
        self.is_aware = self._notices
        if self.is_aware and self.alive and self.jobs is not None:
            self._do(self.jobs.bus.disconnect)

    def mend(self) -> None:
        """It is reached again."""
        self.world.cut_off.discard(self.name)
        if self.is_aware and self.alive:
            self.is_aware = False
            self.later(0.0, self.drivers.reconnected)
            if self.jobs is not None:
                self.later(0.0, self.jobs.bus.reconnect)

    def leave(self) -> None:
        """A restart by SIGTERM, as far as that concerns jobs."""
        if self.alive and self.jobs is not None:
            self._do(self.jobs.leave)

    def begin_anew(self) -> None:
        """It has ended, and is started again."""
        self.kill()
        self.world.at(self.world.now + RESTART_S, self.start)

    # -- callers -------------------------------------------------------------------------------------------------

    def submit(self, call: str, tenant: str, version: str, fate: Fate) -> None:
        """A caller has come, and waits until limits let it in."""
        if self.limits is None:
            self._begin(call, tenant, version, fate)
            return

        def then(answer: LimitAnswer | None) -> None:
            if answer is not None and answer.verdict is LimitVerdict.GRANTED:
                self._let_in(asked, answer)
                self._begin(call, tenant, version, fate)
                self.usages[call].settle(lambda _: self._ended(asked, answer))

        asked = LimitAsk(0, tenant, FUNCTIONS[version])
        answer = self.limits.ask_here(asked)
        if answer is None:
            self.limits.ask(asked, then)
        else:
            then(answer)

    def _let_in(self, asked: LimitAsk, answer: LimitAnswer) -> None:
        self.world.promises.let_in(asked.tenant, self.world.now, self._policy)
        if answer.holds:
            self.world.promises.holds(asked.tenant, (self.instance, answer.number))

    def _ended(self, asked: LimitAsk, answer: LimitAnswer) -> None:
        if self.limits is not None:
            self.limits.ended(LimitEnd(answer.number, asked.tenant, asked.function))
        self.gave_back(asked, answer)

    def gave_back(self, asked: LimitAsk, answer: LimitAnswer) -> None:
        """What was let in has ended."""
        key = self.instance, answer.number
        self.world.promises.gave_back(asked.tenant, key)
        self.later(AT_MOST_LATE, lambda: self._check_permit(asked.tenant, key))

    def _check_permit(self, tenant: str, key: tuple[str, int]) -> None:
        """Where nothing goes wrong, its home has heard of the end by now."""
        if not self.world.has_old_home(shard_of(tenant)):
            self.later(KNOWN_AFTER, lambda: self._check_permit(tenant, key))
        elif self.world.is_calm:
            held = [one for one in self.world.processes.values() if isinstance(one, GatewayProcess) and one.counts(key)]
            self.world.promises.is_free(tenant, key, not held)

    def counts(self, key: tuple[str, int]) -> bool:
        """Whether it counts a permit as held."""
        shards = self.limits.home._shards.values() if self.limits is not None else ()
        return any(key[1] in state.permits.get(key[0], {}) for state in shards)

    def _begin(self, call: str, tenant: str, version: str, fate: Fate) -> None:
        at = self.clock
        usage = self.usages[call] = CallUsage()
        prepared = _prepared(call, tenant, version, fate, at, at + fate.deadline - self.world.now, usage)
        self.world.promises.submitted(call, fate)
        self.drivers.origins.begin(SimCall(prepared, self, at))

    def submit_job(self, job: str, tenant: str, version: str, fate: Fate, options: JobOptions) -> None:
        """A client wants a job."""
        if (jobs := self.jobs) is not None:
            self._do(lambda: jobs.submit(_version(version, fate), tenant, job, options))

    def cancel_job(self, tenant: str, job: str) -> None:
        """A client does not want its job any more."""
        if (jobs := self.jobs) is not None:
            self._do(lambda: jobs.cancel(tenant, job))

    def cancel(self, call: str) -> None:
        """The caller wants no answer any more."""
        usage = self.usages.get(call)
        if usage is not None:
            self.drivers.origins.answer(AskCall(tenant="acme", call_id=call, cancel=True))
            self.drivers.origins.answer(AskCall(tenant="beta", call_id=call, cancel=True))

    # -- messages ------------------------------------------------------------------------------------------------

    def _drive(self, port: SimPort, driver: Driver) -> None:
        port.turn = driver.take_turn
        for subject, handler in driver.handlers().items():
            self.listen(subject, handler)
        port.wake_at(SOON)

    def listen(self, subject: str, handler: Handler) -> None:
        """Its messages on a subject go to a handler."""
        if subject[-1] in "*>" or "*" in subject:
            self._prefixes[re.split("[*>]", subject)[0]] = handler
        else:
            self._handlers[subject] = handler

    def _handler_of(self, subject: str) -> Handler | None:
        if (found := self._handlers.get(subject)) is not None:
            return found
        return next((handler for prefix, handler in self._prefixes.items() if subject.startswith(prefix)), None)

    def listens(self, subject: str) -> bool:
        return self._handler_of(subject) is not None

    def receive(self, mail: Mail) -> None:
        if (handler := self._handler_of(mail.subject)) is not None:
            handler(mail.subject, mail.message, mail.reply)

    # -- the lease and the shards --------------------------------------------------------------------------------

    def _renew(self) -> None:
        asked = self.clock
        if self.name not in self.world.cut_off and not self.lease.is_over(asked):
            epoch = self.lease.epoch if self.lease.valid(asked) else 0
            self.lease.renewed(self._board.renew(self.name, self.instance, epoch, self.world.now), asked)

    def _look(self) -> None:
        if not self.lease.valid(self.clock):
            for shard in list(self.table.acting):
                self._stop_acting(shard)
            self._seen = (-1, 0, False)
            return
        if self.name in self.world.cut_off or self.lease.is_over(self.clock):
            return
        board, now = self._board, self.world.now
        members = board.members(now)
        is_calm = now - board.changed_at > CALM_S
        if self._seen == (board.version, self.lease.epoch, is_calm):
            return
        self._seen = (board.version, self.lease.epoch, is_calm)
        for gone in self.table.see_members(members) or ():
            self.drivers.gateway_gone(gone)
        owners = [board.owner(shard, now) if shard in self.world.shards else None for shard in range(SHARDS)]
        if changed := self.table.see_owners(owners):
            self.drivers.homes_changed(changed)
            for live in self.drivers.origins._book:
                if live.shard in changed and live.origin.state is OriginState.QUEUED:
                    owner = self.table.owner(live.shard)
                    self.world.promises.knows_home(
                        live.call.call_id, owner is None or live.origin._epoch >= owner.epoch
                    )
        me = GatewayMember(self.name, self.instance, self.lease.epoch)
        if me in self.table.members:
            for shard in self.world.shards:
                self._step(shard, me)

    def _step(self, shard: int, me: GatewayMember) -> None:
        owned, members = self._board.records.get(shard), self.table.members
        heir, acting = heir_of(shard, members), self.table.acting.get(shard)
        match step_of(shard, owned, heir, members, me, acting, leaving=False):
            case TakeShard(_, revision):
                self._write(shard, ShardRecord(home=me), revision)
            case BeginShard(_, found):
                self._act(shard, found.revision, found.record.state)
            case LeaveShard():
                self._stop_acting(shard)
            case MoveShard(_, found, to) if self._seen[2]:
                self._write(shard, ShardRecord(home=to, state=self._stop_acting(shard)), found.revision)

    def _write(self, shard: int, record: ShardRecord, expected: int) -> None:
        def write() -> None:
            if self.name not in self.world.cut_off:
                revision = self._board.write(shard, record, expected)
                if revision and record.home.instance == self.instance:
                    self._act(shard, revision, record.state)

        self.later(self.world.rng.random() * 0.01, write)

    def _act(self, shard: int, epoch: int, state: Mapping[str, bytes]) -> None:
        self.world.note("HOME", self.instance, "of", shard, "epoch", epoch)
        self.world.homes_since[shard] = self.world.now
        self.table.acting[shard] = epoch
        for name, participant in self._participants.items():
            participant.begin(shard, epoch, state.get(name, b""))

    def _stop_acting(self, shard: int) -> dict[str, bytes]:
        self.table.acting.pop(shard, None)
        return {name: participant.end(shard) for name, participant in self._participants.items()}


def _prepared(
    call: str, tenant: str, version: str, fate: Fate, at: float, deadline: float, usage: CallUsage
) -> PreparedCall:
    record = _version(version, fate)
    return PreparedCall(
        call_id=call, client_id=None, tenant=tenant, version=record, method=record.spec.methods[0], input=b"",
        priority=Priority.STANDARD, deadline_at=deadline, arrived_at=at, stream=False, usage=usage,
    )  # fmt: skip


def _version(version: str, fate: Fate) -> VersionRecord:
    method = MethodSpec(name="", attribute="f", mode=Mode.GENERATOR if fate.chunks else Mode.UNARY)
    app, _, function = FUNCTIONS[version].partition(":")[2].partition(".")
    spec = FunctionSpec(
        name=function, module="m", qualname="f", methods=(method,), idempotent=fate.idempotent, retries=fate.retries,
        resumable=Resumable() if fate.chunks and fate.idempotent else UNSET,
    )  # fmt: skip
    return VersionRecord(
        id=version, tenant="acme", app=app, function=function, number=1, manifest_sha256="", spec=spec, bundle_bytes=1,
        created_at=0.0,
    )  # fmt: skip


@cache
def _registry() -> MemoryRegistry:
    """What was deployed. Of retries a job's record knows."""
    fate = Fate(gateway="", deadline=0.0, seconds=0.0)
    return MemoryRegistry(versions={version: _version(version, fate) for version in FUNCTIONS})
