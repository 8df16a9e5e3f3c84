"""What a warm call costs the gateway: from the bytes of its request to the bytes of its answer.

One process and no sockets: the gateway's real connections (over transports in memory), endpoint, schemas, limits, homes
and origins, and an agent that answers each run at once. Messages are encoded and decoded as for the bus. CPU time: the
machine may be busy.

    call_us     of a tenant with limits
    budget_us   how much more while it has a budget too: the median of short runs with one, each less the mean of the
                runs before and after it without
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
import pstats
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvloop

from benchmarks import report
from pilotlight_core.bus import Handler
from pilotlight_core.host.binding_book import MemoryBindings
from pilotlight_core.host.effective_limits import Allowances
from pilotlight_core.model import subjects
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.messages.call_messages import Ended, Outcome, Run, Spent, Stages
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.wire import decode, encode
from pilotlight_core.model.money.budgets import BilledBudgets, BilledSpending, Budget, BudgetPeriod, BudgetsRecord
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.call_drivers import CallDrivers
from pilotlight_gateway.calls.call_service import CallService
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.cluster.driver_port import BusDriverPort
from pilotlight_gateway.cluster.shard_ownership import ShardOwner
from pilotlight_gateway.cluster.shard_table import ShardTable
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.home.home import QueueLimits
from pilotlight_gateway.http.server import make_server
from pilotlight_gateway.limits.limit_policy import LimitPolicies
from pilotlight_gateway.limits.limiter import HomeLimiter
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from pilotlight_gateway.traces.traced_calls import TracedCalls
from tests.builders.calls import credit
from tests.builders.nodes import binding
from tests.gateway.world import World, function

RUNS = 5
CONNECTIONS = 64
REGION, GATEWAY, NODE = "local", "gw1", "n1"
CONTAINERS, SLOTS = 8, 16
FUNCTION = "acme:shop.hello"
TENANT = "acme"
LIMITS = Limits(requests_per_s=1e6, concurrency=10_000, cost_per_s=1e9)
BUDGET = Budget(id="month", amount=10**15, period=BudgetPeriod.MONTH)
TURN = 500
"""Calls of a short run: a tenth of a second, in which a machine keeps its pace."""
CREDIT_S = 0.5
ROWS = 45
"""Of a profile."""


class HeldRegistry(MemoryRegistry):
    """Works out tiers and limits once, as the real registry does."""

    allowances: Allowances | None = None

    def _allowances(self) -> Allowances:
        if self.allowances is None:
            self.allowances = super()._allowances()
        return self.allowances


@dataclass(kw_only=True)
class MemoryMirror:
    """A bucket without records."""

    on_change: list[Any] = field(default_factory=list)

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *error: object) -> None:
        pass


class MemoryBus:
    """What drivers use of a bus. Runs go to the agent below, and its answers to the handlers."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.connected = True
        self._handlers: dict[str, Handler] = {}
        self._runs: list[bytes] = []

    def mirror(self, _bucket: str, _keys: str = "") -> MemoryMirror:
        return MemoryMirror()

    @asynccontextmanager
    async def listening(self, handlers: Mapping[str, Handler], **_: object) -> AsyncIterator[None]:
        self._handlers |= handlers
        yield

    def publish_nowait(self, _subject: str, message: Message, *, reply: str = "") -> None:  # noqa: ARG002
        data = encode(message)
        if isinstance(message, Run):
            if not self._runs:
                self.loop.call_soon(self._answer)
            self._runs.append(data)

    def tell(self, message: Message, pattern: str, subject: str) -> None:
        """Hand a message to the handler of a pattern."""
        self._handlers[pattern](subject, decode(encode(message)), "")

    def _answer(self) -> None:
        runs, self._runs = self._runs, []
        pattern, subject = subjects.reply(REGION, GATEWAY), subjects.reply(REGION, GATEWAY, NODE)
        for data in runs:
            run = decode(data)
            self.tell(
                Ended(
                    call_id=run.call_id,
                    grant_number=run.grant_number,
                    container=run.container,
                    outcome=Outcome.OK,
                    output=run.input,
                    spent=Spent(ns=1_000_000, ppm=1_000_000, price="cpu"),
                    stages=Stages(execute_ms=0.001, total_ms=0.002),
                ),
                pattern,
                subject,
            )


class OwnLease:
    """A lease that holds."""

    epoch = 1

    def valid(self, _at: float) -> bool:
        return True


class MemoryTransport(asyncio.Transport):
    """Of one client, which sends its next request when it has its answer."""

    def __init__(self, clients: Clients) -> None:
        super().__init__()
        self._clients = clients
        self.protocol: Any = None

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self._clients.answered(self.protocol, data)

    def get_extra_info(self, _name: str, default: Any = None) -> Any:
        return default

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Clients:
    """Sixty-four connections. `call` sends so many requests over them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, request: bytes) -> None:
        self._loop = loop
        self._request = request
        self._idle: list[Any] = []
        self._left = self._open = 0
        self._done = asyncio.Event()

    def connect(self, protocol: Any) -> None:
        transport = MemoryTransport(self)
        transport.protocol = protocol
        protocol.connection_made(transport)
        self._idle.append(protocol)

    async def call(self, calls: int) -> None:
        self._left = calls
        self._done.clear()
        self._loop.call_soon(self._send)
        await self._done.wait()

    def answered(self, protocol: Any, data: bytes) -> None:
        if not data.startswith(b"HTTP/1.1 200"):
            raise AssertionError(data.decode())
        self._open -= 1
        if self._left and not self._idle:
            self._loop.call_soon(self._send)
        self._idle.append(protocol)
        if not self._left and not self._open:
            self._done.set()

    def _send(self) -> None:
        idle, self._idle = self._idle, []
        for number, protocol in enumerate(idle):
            if not self._left:
                self._idle += idle[number:]
                break
            self._left -= 1
            self._open += 1
            protocol.data_received(self._request)


def request_of(key: object) -> bytes:
    """A call, as a stock client sends it."""
    body = b'{"input": {"name": "Ada"}}'
    head = (
        f"POST /v1/functions/shop.hello/calls HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nAccept: */*\r\n"
        f"Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\nUser-Agent: python-httpx/0.28.1\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def say_credits(bus: MemoryBus, more: dict[str, Any], seq: int) -> None:
    """Say, from now on again and again, that all containers are ready: who is silent gets no calls."""
    for number in range(CONTAINERS):
        told = credit(f"c{number}", seq, **more)
        bus.tell(told, subjects.credit(REGION), subjects.credit(REGION, NODE, more["version"]))
    bus.loop.call_later(CREDIT_S, say_credits, bus, more, seq + 1)


class KeptBudgets:
    """The home of all budgets, and who keeps its records, without a bucket to keep them in."""

    def __init__(self, registry: MemoryRegistry) -> None:
        self._registry = registry
        self.home = BudgetHome(registry.budgets, time.time)

    async def set(self, budgets: tuple[Budget, ...]) -> None:
        """Let the tenant have these, of which the ledger has nothing."""
        record = BudgetsRecord(tenant=TENANT, budgets=budgets) if budgets else None
        await self._registry.change_budgets(TENANT, lambda _: record)
        if budgets:
            self.home.follow(TENANT)
        self.keep()
        begun = {name: BilledSpending(begins=one.span.begins) for name, one in self.home.purses(TENANT).items()}
        self.home.on_billed(BilledBudgets(tenant=TENANT, upto=time.time(), budgets=begun))
        self.keep()

    def keep(self) -> None:
        if self.home.needs_reading(TENANT):
            self.home.loaded(TENANT, None, 0)
        if (wanted := self.home.unwritten(TENANT)) is not None:
            self.home.written(wanted[0], wanted[1] + 1)

    async def run(self) -> None:
        """Keep them each second."""
        while True:
            await asyncio.sleep(1.0)
            self.keep()


@asynccontextmanager
async def gateway(folder: Path, tracing: TracedCalls | None = None) -> AsyncIterator[tuple[Clients, KeptBudgets]]:
    """A gateway that is the home of everything, with clients; its calls are traced as `tracing` has it."""
    bus: Any = MemoryBus()
    world = World(folder, HeldRegistry())
    if tracing is not None:
        world.services.tracing = tracing
        world.services.recorder.sinks = (tracing.keeper,)
    registry: Any = world.services.registry
    world.registry = registry
    key = world.add_key("acme", "invoke")
    (version,) = world.deploy(function(), tenant="acme")
    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=LIMITS)
    table = ShardTable(GATEWAY, OwnLease())
    table.acting = dict.fromkeys(range(subjects.SHARDS), 1)
    table.see_owners([ShardOwner(GATEWAY, 1)] * subjects.SHARDS)
    fleet, bindings, port = FleetView(), MemoryBindings(), BusDriverPort(bus)
    bodies = LargeBodies(url="http://origin", budget=world.services.budget)
    drivers = CallDrivers(
        port, table, fleet, bodies, bindings, region=REGION, gateway=GATEWAY, limits=QueueLimits()
    )  # fmt: skip
    budgets = KeptBudgets(registry)
    policies = LimitPolicies(registry.limits, registry.budgets)
    limiter = HomeLimiter(bus, table, policies, region=REGION, gateway=GATEWAY, budgets=budgets.home)
    world.services.limits = limiter
    world.services.calls = CallService(
        bus, drivers.origins, table, fleet, drivers.homes.statistics,
        region=REGION, budget=world.services.budget,
    )  # fmt: skip
    world.clock.at = time.monotonic()
    for shard in range(subjects.SHARDS):
        drivers.homes.begin(shard, 1, b"")
    async with limiter, port.driving(drivers):
        more: dict[str, Any] = {"version": version.id, "function": FUNCTION, "slots": SLOTS, "node": NODE}
        for number in range(CONTAINERS):
            bindings.bind(binding(f"c{number}", **more))
        say_credits(bus, more, 1)
        server = make_server(world.app)
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        server.server_state.default_headers = [(b"date", b"Mon, 01 Jun 2026 00:00:00 GMT")]
        clients = Clients(bus.loop, request_of(key))
        for _ in range(CONNECTIONS):
            make_protocol: Any = server.config.http_protocol_class
            clients.connect(make_protocol(config=server.config, server_state=server.server_state, app_state={}))
        keeping = bus.loop.create_task(budgets.run())
        yield clients, budgets
        keeping.cancel()
    world.ledger.close()


async def measure(rounds: int, runs: int, profile: cProfile.Profile | None) -> tuple[list[float], list[float]]:
    """Microseconds of CPU per call, of each run; and how much more with a budget, of each pair."""
    with TemporaryDirectory() as folder:
        async with gateway(Path(folder)) as (clients, budgets):
            await clients.call(rounds // 4)
            if profile is not None:
                await budgets.set((BUDGET,))
            values = [await timed(clients, rounds, profile) for _ in range(runs)]
            turns = []
            for number in range(0 if profile else 2 * (runs * rounds // TURN // 2) + 1):
                await budgets.set((BUDGET,) if number % 2 else ())
                await clients.call(CONNECTIONS)
                turns.append(await timed(clients, TURN))
    pairs = [having - (turns[2 * n] + turns[2 * n + 2]) / 2 for n, having in enumerate(turns[1::2])]
    return values, pairs


async def timed(clients: Clients, rounds: int, profile: cProfile.Profile | None = None) -> float:
    """Microseconds of this process a call, of so many."""
    gc.collect()
    if profile is not None:
        profile.enable()
    begun = time.process_time()
    await clients.call(rounds)
    took = time.process_time() - begun
    if profile is not None:
        profile.disable()
    return took / rounds * 1e6


def main() -> None:
    """Measure, print the table and the figures."""
    parser = report.arguments("gateway_path", __doc__ or "")
    parser.add_argument("--profile", action="store_true", help="where the time goes, by function")
    options = parser.parse_args()
    rounds, runs = (4_000, 3) if options.quick else (20_000, RUNS)
    profile = cProfile.Profile() if options.profile else None
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        values, pairs = runner.run(measure(rounds, 1 if profile else runs, profile))
    if profile is not None:
        pstats.Stats(profile).sort_stats("tottime").print_stats(ROWS)
    figures = {"call_us": report.median(values), "call_us_best": min(values)}
    if pairs:
        figures["budget_us"] = report.median(pairs)
    report.table(
        "A warm call at the gateway, without sockets", ("what", "µs"),
        [("median of the runs", figures["call_us"]), ("best run", figures["call_us_best"]),
         ("more with a budget", figures.get("budget_us", 0.0))],
    )  # fmt: skip
    report.finish("gateway_path", figures)


if __name__ == "__main__":
    main()
