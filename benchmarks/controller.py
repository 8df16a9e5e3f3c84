"""What the controller costs on a large fleet: `python -m benchmarks.controller [--quick]`.

The product's controller process, on a nats-server of its own, with 10,000 GPUs whose nodes report each second,
10,000 containers of 2,000 busy functions, 100,000 deployed functions, and homes that repeat their demand. Ten times
a second calls begin to wait for a function without containers (an edge). After a while a tenant comes whose 1,000
functions all have calls and no place.

    pass_p99_ms        a pass over all versions, before that tenant comes: wall time
    core_share         processor time of the controller, of one core, before that tenant comes
    blocked_extra_ms   by how much that tenant makes the mean pass longer: processor time
    edge_p99_ms        from an edge to the command at a node, all the while
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import report
from benchmarks.controlled.busy_fleet import SCARCE, BusyFleet, FleetSize, make_busy_fleet
from benchmarks.controlled.measured_controller import MeasuredPass
from benchmarks.controlled.node_stand_ins import RUNNING, SLOTS, StandInNode
from pilotlight_autoscaler.bindings.binding_terms import host_terms, slice_terms
from pilotlight_core.bus import Bus, BusTimeout, Kv, connect
from pilotlight_core.host.binding_book import key_of
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.messages.demand import Demand, Demands
from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_supervisor.embedded_bus import EmbeddedNats, choose_port, find_nats_server, write_config

REGION = "local"
BEATS_PER_S = 200
"""Turns in which a part of the nodes report, and of the homes tell: so many that none delays an edge or its answer."""
DEMAND_EVERY_S = 0.25
EDGES_PER_S = 10
EDGE_WAITS_S = 1.5
"""For so long a function with an edge has a call."""
WARM_S = 8.0
SHARED_S = 30.0
"""After so long the blocked tenant has its share of what others held, and nobody has to give it more."""


@dataclass(kw_only=True)
class Load:
    """All that speaks to the controller."""

    bus: Bus
    fleet: BusyFleet
    nodes: dict[str, StandInNode]
    rng: random.Random
    edges: dict[str, float] = field(default_factory=dict)
    """Version -> when its calls began to wait."""
    blocked: bool = False
    waits: list[tuple[float, float]] = field(default_factory=list)
    """When each edge began, and the seconds until its command came."""
    missed: int = 0
    shortages: int = 0
    _wanted: Counter[str] = field(default_factory=Counter)
    """Calls that a busy function's callers have at once: what its containers do not run waits."""
    _short_since: dict[str, float] = field(default_factory=dict)
    """Busy versions that have lost a container to others -> since when their calls wait for one."""
    _idle: dict[str, VersionRecord] = field(default_factory=dict)
    _blocked_since: float = 0.0

    async def listen(self) -> None:
        for name in self.nodes:
            await self.bus.subscribe(subjects.command(REGION, name), self._on_command)
        await self.bus.subscribe(subjects.shortages(REGION), self._on_shortages)

    def _on_shortages(self, _subject: str, message: Any, _reply: str) -> None:
        self.shortages += len(message.items)

    def _on_command(self, subject: str, command: Any, reply: str) -> None:
        at = time.monotonic()
        node = self.nodes[subject.split(".")[3]]
        if isinstance(command, Bind) and (since := self.edges.get(command.version)) and since > 0:
            self.waits.append((since, at - since))
            self.edges[command.version] = -since
        self.bus.publish_nowait(reply, node.obey(command, at))
        self._report(node, at)

    def _report(self, node: StandInNode, at: float) -> None:
        self.bus.publish_nowait(subjects.beat(REGION, node.name), node.report(at))

    async def run(self) -> None:
        """Report and tell, in even turns."""
        nodes, turn = list(self.nodes.values()), 0
        busy = self._by_shard(self.fleet.busy)
        blocked = self._by_shard(self.fleet.blocked)
        self._idle = {version.id: version for version in self.fleet.idle}
        self._wanted = Counter(version.id for _, version in self.fleet.held for _ in range(RUNNING))
        homes = max(1, round(BEATS_PER_S * DEMAND_EVERY_S))
        begun = time.monotonic()
        while True:
            at = time.monotonic()
            for node in nodes[turn % BEATS_PER_S :: BEATS_PER_S]:
                self._report(node, at)
                for credit in node.credits(at):
                    self.bus.publish_nowait(subjects.credit(REGION, node.name, credit.version), credit)
            for shard in range(turn % homes, subjects.SHARDS, homes):
                self._tell(shard, [self._busy(version, at) for version in busy.get(shard, ())])
                if self.blocked:
                    self._tell(shard, [self._waiting(version, at) for version in blocked.get(shard, ())])
            if turn % homes == 0:
                self._repeat_edges(at)
            if turn % (BEATS_PER_S // EDGES_PER_S) == 0:
                self._edge()
            turn += 1
            await asyncio.sleep(max(0.0, begun + turn / BEATS_PER_S - time.monotonic()))

    def block(self) -> None:
        """Let the tenant come whose functions have no place."""
        self.blocked, self._blocked_since = True, time.monotonic()

    def _by_shard(self, versions: list[VersionRecord]) -> dict[int, list[VersionRecord]]:
        found: dict[int, list[VersionRecord]] = {}
        for version in versions:
            found.setdefault(subjects.shard_of(function_of(version)), []).append(version)
        return found

    def _tell(self, shard: int, items: list[Demand]) -> None:
        if items:
            message = Demands(gateway="gw", shard=shard, items=tuple(items))
            self.bus.publish_nowait(subjects.demands(REGION, shard), message)

    def _busy(self, version: VersionRecord, at: float) -> Demand:
        serving = next(iter(self.nodes.values())).serving
        running = serving[version.id] * RUNNING
        waiting = max(0, self._wanted[version.id] - running)
        if not waiting:
            self._short_since.pop(version.id, None)
        waits_ms = (at - self._short_since.setdefault(version.id, at)) * 1e3 if waiting else 0.0
        arrivals = self.rng.randrange(1, 4)
        return demand(
            version, running=running, queued=waiting, oldest_ms=waits_ms, arrivals=arrivals, oldest_run_ms=300.0
        )

    def _waiting(self, version: VersionRecord, at: float) -> Demand:
        return demand(version, queued=3, oldest_ms=(at - self._blocked_since) * 1e3)

    def _edge(self) -> None:
        version = self.rng.choice(self.fleet.idle)
        if version.id not in self.edges:
            self.edges[version.id] = time.monotonic()
            shard = subjects.shard_of(function_of(version))
            self._tell(shard, [demand(version, queued=1, arrivals=1, edge=True)])

    def _repeat_edges(self, at: float) -> None:
        known = self._idle
        for name, since in list(self.edges.items()):
            version, waited = known[name], at - abs(since)
            over = waited > EDGE_WAITS_S
            if over and since > 0:
                self.missed += 1
            told = demand(version, queued=int(since > 0 and not over), running=int(since < 0 and not over))
            self._tell(subjects.shard_of(function_of(version)), [told])
            if over:
                del self.edges[name]


def function_of(version: VersionRecord) -> str:
    return f"{version.tenant}:{version.app}.{version.function}"


def demand(version: VersionRecord, **more: Any) -> Demand:
    fields: dict[str, Any] = {"queued": 0, "oldest_ms": 10.0, "running": 0, "arrivals": 0} | more
    return Demand(
        version=version.id, tenant=version.tenant, gateway="gw", epoch=1, service_ms=500.0,
        function=function_of(version), **fields,
    )  # fmt: skip


async def store(bus: Bus, fleet: BusyFleet, nodes: dict[str, StandInNode]) -> None:
    """Write what a platform of this size has in its registry and its bindings."""
    encode = msgspec.msgpack.Encoder().encode
    tenancy, registry = bus.kv(subjects.TENANCY_BUCKET), bus.kv(subjects.REGISTRY_BUCKET)
    bindings = bus.kv(subjects.BINDING_BUCKET)
    tenants = {version.tenant for version in fleet.versions}
    writes: list[tuple[Kv, str, msgspec.Struct]] = [
        (tenancy, f"tenant.{name}", TenantRecord(name=name, created_at=0.0, tier="enterprise")) for name in tenants
    ]
    writes += [(registry, f"version.{version.id}", version) for version in fleet.versions]
    writes += [(registry, f"app.{app.tenant}.{app.app}", app) for app in fleet.apps()]
    writes += [(bindings, key_of(REGION, one), one) for one in bindings_of(fleet, nodes)]
    for first in range(0, len(writes), 200):
        await asyncio.gather(*(put(kv, key, encode(one)) for kv, key, one in writes[first : first + 200]))


async def put(kv: Kv, key: str, data: bytes) -> None:
    """Write a record, again if a busy machine is late with its answer."""
    for _ in range(20):
        with contextlib.suppress(BusTimeout):
            await kv.put(key, data)
            return
    raise SystemExit(f"{key} cannot be written")


def bindings_of(fleet: BusyFleet, nodes: dict[str, StandInNode]) -> Iterator[Binding]:
    """What a former leader has written of the containers that run."""
    reports = {name: node.report(0.0) for name, node in nodes.items()}
    for held, version in fleet.held:
        report_, container = reports[held.slice.node], nodes[held.slice.node].containers[held.container]
        terms = slice_terms(report_, container.slice)
        assert terms is not None, container.slice
        core_ppm, gib_ppm = host_terms(container.host, *terms)
        yield Binding(
            container=held.container, node=report_.node, version=version.id, tenant=version.tenant,
            function=held.function, slice=container.slice, ppm=terms[0], price=terms[1], slots=SLOTS,
            core_ppm=core_ppm, gib_ppm=gib_ppm,
        )  # fmt: skip


def stand_ins(fleet: BusyFleet, rng: random.Random) -> dict[str, StandInNode]:
    """The nodes with the containers that run on them."""
    served = {version.id: version.spec.gpu[0].type == SCARCE for version in fleet.busy}
    serving: Counter[str] = Counter()
    nodes = {node.name: StandInNode(node=node, rng=rng, served=served, serving=serving) for node in fleet.nodes}
    for held, version in fleet.held:
        nodes[held.slice.node].take(held, version.id, time.monotonic())
    return nodes


@asynccontextmanager
async def nats(folder: Path, fleet: BusyFleet, nodes: dict[str, StandInNode]) -> AsyncIterator[str]:
    """A nats-server as the product configures it, with the fleet's records, written before it syncs each one."""
    server = EmbeddedNats(folder=folder / "nats", port=choose_port(folder / "nats"))
    config = write_config(server.folder, server.port)
    quick = config.with_name("quick.conf")
    quick.write_text(config.read_text().replace("sync_interval: always", ""))
    with running(str(find_nats_server()), "-c", str(quick), log=folder / "loading.log"):
        async with connect(server.url, name="loader", timeout=20.0) as bus:
            await store(bus, fleet, nodes)
    await server.start()
    try:
        yield server.url
    finally:
        await server.stop()


@contextmanager
def controller(folder: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """The controller's process; its passes are in `folder` when it has ended."""
    command = [
        sys.executable, "-m", "benchmarks.controlled.measured_controller", str(folder / "passes"),
        "--state-dir", str(folder), "--region", REGION, "--name", "controller",
    ]  # fmt: skip
    with running(*command, log=folder / "controller.log", PILOTLIGHT_NATS_URL=url) as process:
        yield process


@contextmanager
def running(*command: str, log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process, until the block ends."""
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ, **environment})
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A part of the run, and what the controller used in it. Instants are monotonic seconds."""

    begins: float
    ends: float
    cpu_s: float

    def holds(self, at: float) -> bool:
        return self.begins <= at <= self.ends


async def phase(pid: int, seconds: float) -> Phase:
    begins, cpu = time.monotonic(), report.cpu_seconds(pid)
    await asyncio.sleep(seconds)
    return Phase(begins=begins, ends=time.monotonic(), cpu_s=report.cpu_seconds(pid) - cpu)


async def measure(folder: Path, fleet: BusyFleet, seconds: float, rng: random.Random) -> dict[str, float]:
    """The figures of one run."""
    nodes = stand_ins(fleet, rng)
    async with nats(folder, fleet, nodes) as url, connect(url, name="load") as bus:
        load = Load(bus=bus, fleet=fleet, nodes=nodes, rng=rng)
        await load.listen()
        with controller(folder, url) as process:
            running = asyncio.create_task(load.run())
            while not load.waits:  # it leads and binds
                await asyncio.sleep(0.2)
                if process.poll() is not None or running.done():
                    raise SystemExit((folder / "controller.log").read_text()[-4000:])
            await asyncio.sleep(WARM_S)
            alone = await phase(process.pid, seconds)
            load.block()
            await asyncio.sleep(min(SHARED_S, 3 * seconds))
            blocked = await phase(process.pid, seconds)
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
    passes = msgspec.msgpack.decode((folder / "passes").read_bytes(), type=list[MeasuredPass])
    return figures_of(load, passes, alone, blocked)


def figures_of(load: Load, passes: list[MeasuredPass], alone: Phase, blocked: Phase) -> dict[str, float]:
    whole = {one: [each for each in passes if each.is_whole and one.holds(each.began)] for one in (alone, blocked)}
    edges = [waited * 1e3 for since, waited in load.waits if alone.holds(since) or blocked.holds(since)]
    if not (edges and whole[alone] and whole[blocked]):
        raise SystemExit(
            f"no figures: {len(edges)} edges had a command, {load.missed} had none within {EDGE_WAITS_S} s; "
            f"{len(whole[alone])} and {len(whole[blocked])} passes over all in the two phases: the machine is too slow"
        )
    mean = {one: sum(each.cpu_ms for each in whole[one]) / max(1, len(whole[one])) for one in whole}
    rows: list[tuple[str, object]] = []
    for name, one in (("without", alone), ("with", blocked)):
        some = whole[one]
        single = [each for each in passes if not each.is_whole and one.holds(each.began)]
        rows += [
            (f"{name} the blocked tenant: whole passes", len(some)),
            ("  p50 of a pass, ms", report.percentile([each.wall_ms for each in some], 50)),
            ("  p99 of a pass, ms", report.percentile([each.wall_ms for each in some], 99)),
            ("  p50 in processor time, ms", report.percentile([each.cpu_ms for each in some], 50)),
            ("  p99 in processor time, ms", report.percentile([each.cpu_ms for each in some], 99)),
            ("  passes of edges", len(single)),
            ("  p50 in processor time, ms", report.percentile([each.cpu_ms for each in single] or [0.0], 50)),
            ("  part of a core", one.cpu_s / (one.ends - one.begins)),
        ]
    rows += [
        ("edges answered", len(edges)), ("edges without a command", load.missed),
        ("p50 of an edge, ms", report.percentile(edges, 50)), ("p99 of an edge, ms", report.percentile(edges, 99)),
        ("shortages heard", load.shortages),
    ]  # fmt: skip
    report.table("The controller", ("what", "figure"), rows)
    return {
        "pass_p99_ms": report.percentile([each.wall_ms for each in whole[alone]], 99),
        "pass_cpu_p99_ms": report.percentile([each.cpu_ms for each in whole[alone]], 99),
        "core_share": alone.cpu_s / (alone.ends - alone.begins),
        "blocked_extra_ms": mean[blocked] - mean[alone],
        "edge_p99_ms": report.percentile(edges, 99),
        "edge_p50_ms": report.percentile(edges, 50),
        "blocked_pass_p99_ms": report.percentile([each.wall_ms for each in whole[blocked]], 99),
        "blocked_core_share": blocked.cpu_s / (blocked.ends - blocked.begins),
    }


def main() -> None:
    """Measure and report."""
    parser = report.arguments("controller", "what the controller costs on 10,000 GPUs with 100,000 functions")
    parser.add_argument("--seconds", type=float, default=40.0, help="of each of the two phases")
    parser.add_argument("--seed", type=int, default=42)
    options = report.parsed(parser)
    seconds = options.seconds
    size = FleetSize(gpus=10_000, containers=10_000, busy=2_000, deployed=100_000, blocked=1_000)
    if options.quick:
        seconds = min(seconds, 5.0)
        size = FleetSize(gpus=800, containers=600, busy=150, deployed=3_000, blocked=100)
    rng = random.Random(options.seed)
    fleet = make_busy_fleet(size, rng)
    print(f"{len(fleet.nodes)} nodes, {len(fleet.held)} containers", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measure(Path(folder), fleet, seconds, rng))
    report.finish("controller", figures)


if __name__ == "__main__":
    main()
