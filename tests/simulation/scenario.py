"""One seeded history: gateways, agents, a controller, callers, and a storm that passes."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from pilotlight_core.model import subjects
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.messages.demand import Demands
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_gateway.jobs.job_dispatcher import DispatcherStatistics
from pilotlight_gateway.jobs.job_service import JobOptions
from pilotlight_gateway.limits.limit_policy import LimitPolicy, policy_of
from tests.builders.nodes import binding
from tests.simulation.agent import FUNCTIONS, SimAgent
from tests.simulation.board import Board
from tests.simulation.gateway_process import GatewayProcess
from tests.simulation.job_side import Sweeper
from tests.simulation.promises import Broken, Fate, Promises
from tests.simulation.stream_server import UNIX, StreamServer
from tests.simulation.world import Mail, Process, World

STORM_ENDS = 8.0
AFTERWARDS = 15.0
"""By then the survivors have found each other again: calls that come now are promised an answer."""
LONGEST = 60.0
"""What is not quiet by then never will be."""
SLOTS = 2
LOOK_S = 0.3
SETTLED_S = 5.0
"""After which no call runs any more whose grant was another home's."""
LIMITED = 3
"""One history in so many has limits."""
JOBBED = (3, 7)
"""Of twelve histories those that have jobs; the first has limits as well."""
TENANTS = ("acme", "beta")
NO_JOBS = DispatcherStatistics(flows=0, known=0, waiting=0, running=0)
MOST_CONTAINERS = 4
"""Of one version, on all nodes."""


def has_limits(seed: int) -> bool:
    """Whether tenants of this history have limits."""
    return seed % LIMITED == 0


def has_jobs(seed: int) -> bool:
    """Whether there are jobs in this history."""
    return seed % 12 in JOBBED


class Controller(Process):
    """A stub: makes containers where there is demand, on whatever agent lives."""

    def __init__(self, world: World, agents: list[SimAgent]) -> None:
        super().__init__(world, "controller")
        self._agents = agents
        self._made = 0
        self._wanted: dict[str, int] = {}

    def boot(self) -> None:
        self.every(0.5, self._tick)

    def listens(self, subject: str) -> bool:
        return True

    def receive(self, mail: Mail) -> None:
        message = mail.message
        assert isinstance(message, Demands)
        for demand in message.items:
            self._wanted[demand.version] = demand.queued
        if any(demand.edge for demand in message.items):
            self._tick()

    def _tick(self) -> None:
        for version, queued in self._wanted.items():
            there = [
                c for agent in self._agents if agent.alive for c in agent.containers.values() if c.version == version
            ]
            usable = [c for c in there if c.state is not ContainerState.DRAINING]
            if queued > len(usable) and len(usable) < MOST_CONTAINERS:
                agent = self.world.rng.choice([agent for agent in self._agents if agent.alive] or self._agents)
                self._made += 1
                container = f"{version}-{self._made}"
                self.world.bindings.bind(
                    binding(container, version, node=agent.name, function=FUNCTIONS[version], slots=SLOTS)
                )
                agent.take_command(partial(agent.bind, container, version, SLOTS))


class History:
    """The world of one seed, set up and ready to run."""

    def __init__(self, seed: int, *, traced: bool = False) -> None:
        world = self.world = World(seed, traced=traced)
        self._rng = world.rng
        self._versions = list(FUNCTIONS)[: self._rng.choice((1, 2))]
        world.shards = tuple(subjects.shard_of(FUNCTIONS[version]) for version in self._versions)
        board = Board()
        gateways = [f"gateway{n}" for n in range(self._rng.choice((1, 2, 2, 3)))]
        agents = [f"agent{n}" for n in range(self._rng.choice((1, 2, 2)))]
        policy = self._policy() if has_limits(seed) else None
        self._has_jobs = has_jobs(seed)
        server = StreamServer(world, board) if self._has_jobs else None
        self.gateways = [GatewayProcess(world, name, board, policy, server) for name in gateways]
        self.agents = [SimAgent(world, name) for name in agents]
        for process in (*self.gateways, *self.agents, Controller(world, self.agents)):
            process.start()
        if server is not None:
            random.seed(seed)  # where those wait who lost a compare-and-set
            server.start()
            Sweeper(world, server).start()
        self._calls = self._jobs = 0
        self._draw_callers()
        troubles = self._draw_troubles()
        world.is_calm = world.promises.is_calm = not troubles and world.in_order and not world.duplicates
        if policy is not None and world.is_calm:
            world.promises.most_at_once = policy.scopes[0].concurrency
        self._draw_breaks()
        world.at(STORM_ENDS, self._calm)
        if world.is_calm:
            world.at(LOOK_S, self._check_grants)

    def run(self) -> Promises:
        """Let it happen.

        Raises:
            Broken: a promise was.
        """
        try:
            self.world.run(LONGEST, self._is_quiet)
            self._check_quiet()
        finally:
            self._close()
        return self.world.promises

    def _draw_callers(self) -> None:
        for _ in range(self._rng.randint(5, 25)):
            self._callers(self._rng.uniform(0.2, STORM_ENDS), must_succeed=False)
        for _ in range(4):
            self._callers(AFTERWARDS + self._rng.random(), must_succeed=True)
        if self._has_jobs:
            for _ in range(self._rng.randint(3, 8)):
                self._client(self._rng.uniform(0.2, STORM_ENDS), must_succeed=False)
            for _ in range(2):
                self._client(AFTERWARDS + self._rng.random(), must_succeed=True)

    def _draw_troubles(self) -> int:
        troubles = 0 if self.world.breaks_links_alone else self._rng.choice((0, 1, 2, 3, 4, 6))
        for _ in range(troubles):
            self._trouble(self._rng.uniform(0.5, STORM_ENDS - 0.5))
        if self._has_jobs and troubles:
            self._kill_after_accepting()
        return troubles

    def _draw_breaks(self) -> None:
        """Of links, which is no trouble: where nothing else goes wrong, nobody notices."""
        rng = self.world.link_rng
        for _ in range(rng.choice((0, 6, 18)) if self.world.has_links else 0):
            self.world.at(rng.uniform(0.5, STORM_ENDS), self._break_link)

    def _break_link(self) -> None:
        rng = self.world.link_rng
        if self.world.links:
            end = self.world.links.pop(rng.randrange(len(self.world.links)))
            self.world.note("BREAK", end.process.name, end.other.process.name)
            end.snap_when_used(delivers=rng.random() < 0.5)

    def _policy(self) -> LimitPolicy:
        """Every tenant's limits."""
        self.world.shards += tuple(subjects.shard_of(tenant) for tenant in TENANTS)
        limits = Limits(requests_per_s=self._rng.choice((1.0, 4.0)), burst=4.0, concurrency=self._rng.choice((1, 3)))
        return policy_of(EffectiveLimits(tenant=limits, function=NO_LIMITS), "")

    # -- callers -------------------------------------------------------------------------------------------------

    def _callers(self, when: float, *, must_succeed: bool) -> None:
        rng = self._rng
        seconds = rng.choice((0.01, 0.05, 0.3, 1.0, 3.0))
        deadly = rng.random() < 0.03 and not must_succeed
        patience = rng.uniform(12.0, 20.0) if must_succeed else rng.choice((0.5, 2.0, 5.0, 12.0, 25.0))
        raises = rng.choice((0, 0, 0, 0, 1, 2))
        chunks = rng.choice((0, 0, 0, 3)) if self.world.in_order or not must_succeed else 0
        fate = Fate(
            gateway=rng.choice(self.gateways).name,
            deadline=when + (5.0 if deadly else patience),
            seconds=min(seconds, 1.0) if must_succeed or deadly else seconds,
            raises=raises,
            retries=rng.choice((0, raises)) if not chunks else 0,
            chunks=chunks,
            idempotent=rng.random() < 0.4,
            deadly=deadly,
            must_succeed=must_succeed,
        )
        self._calls += 1
        call, tenant, version = f"call{self._calls}", rng.choice(TENANTS), rng.choice(self._versions)
        self.world.at(when, lambda: self._submit(call, tenant, version, fate))
        if rng.random() < 0.1 and not must_succeed:
            self.world.at(when + rng.expovariate(1.0), lambda: self._cancel(fate.gateway, call))

    def _submit(self, call: str, tenant: str, version: str, fate: Fate) -> None:
        gateway = self.world.processes[fate.gateway]
        if isinstance(gateway, GatewayProcess) and gateway.alive and not gateway.paused:
            gateway.submit(call, tenant, version, fate)

    def _cancel(self, name: str, call: str) -> None:
        gateway = self.world.processes[name]
        if isinstance(gateway, GatewayProcess) and gateway.alive and not gateway.paused:
            gateway.cancel(call)

    # -- clients of jobs -----------------------------------------------------------------------------------------

    def _client(self, when: float, *, must_succeed: bool, at: GatewayProcess | None = None) -> None:
        rng = self._rng
        raises, deadly = rng.choice((0, 0, 0, 1)), rng.random() < 0.03 and not must_succeed
        fate = Fate(
            gateway=(at or rng.choice(self.gateways)).name,
            deadline=when + (5.0 if deadly else 25.0 if must_succeed else rng.choice((3.0, 10.0, 25.0))),
            seconds=rng.choice((0.01, 0.3, 1.0) if must_succeed or deadly else (0.01, 0.3, 1.0, 3.0)),
            raises=raises,
            retries=rng.choice((0, raises)),
            idempotent=rng.random() < 0.4,
            deadly=deadly,
            must_succeed=must_succeed,
        )
        self._jobs += 1
        job, tenant, version = f"job{self._jobs}", rng.choice(TENANTS), rng.choice(self._versions)
        keyed, run_in = rng.random() < 0.5, rng.choice((0.0, 0.0, 0.0, 2.0))
        options = JobOptions(
            key=job if keyed else "",
            run_at=UNIX + when + run_in if run_in else None,
            expires_in_s=fate.deadline - when,
        )
        self.world.promises.jobs.submitted(job, fate)
        self.world.at(when, lambda: self._submit_job(fate.gateway, job, tenant, version, options))
        if keyed:
            again, other = when + rng.choice((0.0, 0.002, 0.3)), rng.choice(self.gateways).name
            self.world.at(again, lambda: self._submit_job(other, job, tenant, version, options))
        if rng.random() < 0.15 and not must_succeed:
            other = rng.choice(self.gateways).name
            self.world.at(when + rng.expovariate(1.0), lambda: self._cancel_job(other, tenant, job))

    def _kill_after_accepting(self) -> None:
        """Kill a gateway when it has stored jobs and perhaps not published them yet."""
        gateway, when = self._rng.choice(self.gateways), self._rng.uniform(0.5, STORM_ENDS - 0.5)
        for _ in range(2):
            self._client(when, must_succeed=False, at=gateway)
        self.world.at(when + self._rng.uniform(0.0, 0.03), partial(self._noted, gateway.kill))
        self.world.at(when + 0.5, partial(self._noted, gateway.start))

    def _submit_job(self, name: str, job: str, tenant: str, version: str, options: JobOptions) -> None:
        gateway = self.world.processes[name]
        if isinstance(gateway, GatewayProcess) and gateway.alive and not gateway.paused:
            gateway.submit_job(job, tenant, version, self.world.promises.jobs.fates[job], options)

    def _cancel_job(self, name: str, tenant: str, job: str) -> None:
        gateway, known = self.world.processes[name], self.world.promises.jobs.accepted.get(job)
        if isinstance(gateway, GatewayProcess) and gateway.alive and not gateway.paused and known is not None:
            gateway.cancel_job(tenant, known)

    # -- the storm -----------------------------------------------------------------------------------------------

    def _trouble(self, when: float) -> None:
        rng = self._rng
        process = rng.choice([*self.gateways, *self.agents])
        lasts = rng.choice((0.1, 0.5, 2.0, 4.0, 12.0))
        agent = rng.choice(self.agents)
        kinds: list[tuple[Callable[[], None], Callable[[], None] | None]] = [
            (process.kill, process.start),
            (process.pause, process.resume),
            (process.pause, process.resume),
            (process.cut, process.mend),
            (partial(self._container, agent, "crash"), None),
            (partial(self._container, agent, "drain"), None),
            (agent.mute, agent.unmute),
        ]
        if self._has_jobs and isinstance(process, GatewayProcess):
            kinds.append((process.leave, None))
        begin, end = rng.choice(kinds)
        self.world.at(when, partial(self._noted, begin))
        if end is not None:
            self.world.at(min(when + lasts, STORM_ENDS), partial(self._noted, end))

    def _noted(self, do: Callable[[], None]) -> None:
        self.world.note("TROUBLE", do)
        do()

    def _container(self, agent: SimAgent, verb: str) -> None:
        if agent.alive and not agent.paused and agent.containers:
            getattr(agent, verb)(self._rng.choice(sorted(agent.containers)))

    def _calm(self) -> None:
        for agent in self.agents:
            agent.muted = False
        for process in (*self.gateways, *self.agents):
            process.mend()
            process.resume()
            process.start()

    def _check_grants(self) -> None:
        """Where nothing goes wrong, a grant that its call cannot use any more is soon free."""
        is_settled = all(self.world.now - since > SETTLED_S for since in self.world.homes_since.values())
        for gateway in self.gateways:
            for home in gateway.drivers.homes:
                for queue in home._queues.values():
                    for call in (call for pooled in queue.pool.all() for call in pooled.held if is_settled):
                        self.world.promises.is_held(call, gateway.name, self.world.now)
                for call, granted in home._grants.by_call.items():
                    self.world.promises.is_reserved(call, granted.grant.grant_number, self.world.now)
        self.world.at(self.world.now + LOOK_S, self._check_grants)

    # -- the end -------------------------------------------------------------------------------------------------

    def _is_quiet(self) -> bool:
        promises = self.world.promises
        if self.world.now < AFTERWARDS + 1.5 or promises.open or promises.jobs.open:
            return False
        busy = any(agent.table.statistics().held for agent in self.agents)
        return not busy and not any(self._believes(gateway) for gateway in self.gateways)

    def _believes(self, gateway: GatewayProcess) -> str:
        """What a gateway still counts as live, and its homes as queued or running; empty if nothing."""
        origins, at = gateway.drivers.origins, gateway.clock
        if len(origins):
            return f"{gateway.name} still has calls"
        excused = self.world.promises.excused
        if left := [call for call, usage in gateway.usages.items() if usage.is_open and call not in excused]:
            return f"{gateway.name} has not heard what became of {left}"
        if gateway.jobs is not None and (work := gateway.jobs.jobs.statistics()) != NO_JOBS:
            return f"{gateway.name} looks after jobs: {work}"
        for shard in self.world.shards:
            if (home := gateway.drivers.homes.get(shard, at)) is not None:
                known = home.statistics(at)
                running = {queue.version: count for queue in home._queues.values() if (count := queue.pool.running())}
                if known.queued or known.granted or running:
                    return f"{gateway.name} counts {known} and {running}"
        return ""

    def _close(self) -> None:
        """End all that runs, without any effect."""
        for process in self.world.processes.values():
            process.kill()
        for loop in self.world.loops:
            loop.forget()

    def _check_quiet(self) -> None:
        promises, now = self.world.promises, self.world.now
        promises.jobs.check_quiet()
        promises.check_open(now, {gateway.name: gateway.woke_at for gateway in self.gateways})
        try:
            for agent in self.agents:
                agent.table.check_integrity()
                assert not agent.table.statistics().held, f"{agent.name} still holds calls"
            for gateway in self.gateways:
                assert not (believes := self._believes(gateway)), believes
                for home in gateway.drivers.homes:
                    home.check_integrity()
                if gateway.limits is not None:
                    gateway.limits.home.check_integrity()
                    assert not gateway.limits._asked, f"{gateway.name} still asks for calls"
        except AssertionError as error:
            raise Broken("P6", str(error)) from error


def simulate(seed: int, *, traced: bool = False) -> Promises:
    """The history of one seed.

    Raises:
        Broken: naming the promise, and the trace if `traced`.
    """
    history = History(seed, traced=traced)
    try:
        return history.run()
    except Broken as broken:
        if traced:
            broken.add_note("\n".join(history.world.trace))
        broken.add_note(f"seed {seed}")
        raise
