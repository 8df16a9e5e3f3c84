"""What a warm call costs an agent and its guest, from `CallDispatcher.on_run` to the last frame, without a bus.

One agent's parts in this process, real guests without a sandbox beside it, and 64 calls at any time: each call that
ends makes room for the next one. Both are measured as CPU time, since the machine may be busy.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import uvloop

from benchmarks import report
from benchmarks.functions import app
from pilotlight_core.model import values
from pilotlight_core.model.messages.call_messages import CallFrame, Chunk, Ended, Outcome, Run, Window
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import Bind, ContainerState, HostShare, SliceReport
from pilotlight_core.model.spec import FunctionSpec, Manifest
from pilotlight_runtime.calls.credits import Credits
from pilotlight_runtime.calls.gateway_links import GatewayLinks
from pilotlight_runtime.calls.nested_asks import AskingBus, NestedAsks
from pilotlight_runtime.calls.node_calls import NodeCalls
from pilotlight_runtime.calls.origin_frames import OriginSender
from pilotlight_runtime.calls.remote_bodies import BodyTransfers
from pilotlight_runtime.calls.slot_table import SlotTable
from pilotlight_runtime.calls.waiting_calls import WaitingCalls
from pilotlight_runtime.containers.blanks.base_environment import own_environment
from pilotlight_runtime.containers.blanks.blank import Blank
from pilotlight_runtime.containers.blanks.blank_starter import BlankStarter
from pilotlight_runtime.containers.blanks.resource_limits import BASE, limits_of
from pilotlight_runtime.containers.container import Container
from pilotlight_runtime.containers.containers import CallDispatcher, Containers
from pilotlight_runtime.containers.host_budget import HostBudget
from pilotlight_runtime.containers.parking import NodeParking
from pilotlight_runtime.containers.provisioner import Provisioner
from pilotlight_runtime.containers.warm_memory import WarmMemory
from pilotlight_runtime.devices.cpu_slots import CpuDevices
from pilotlight_runtime.logs.log_shipper import LogShipper, LogStore
from pilotlight_runtime.metering.container_meter import ContainerMeter, WorkKey, WorkLog
from pilotlight_runtime.metering.ended_shares import EndedShares
from pilotlight_runtime.metering.slices import Slices
from pilotlight_runtime.metering.usage_log import UsageLog
from pilotlight_runtime.metering.usage_metering import Metering
from pilotlight_runtime.sandbox.plain_process import ProcessLauncher
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits

AT_ONCE = 64
CHUNKS = 1_000
"""Of one stream."""
WINDOW = 256
WITHIN_S = 120.0
GATEWAY = "gw"


class NoBus:
    """Takes every message, and stores nothing."""

    def publish_nowait(self, subject: str, message: Message, *, reply: str = "") -> None:
        pass


class OneVersion(Provisioner):
    """Makes containers of a function of the benchmarks' own app, whose files need no verifying."""

    def __init__(self, starter: BlankStarter) -> None:
        self._starter = starter
        self.spec: FunctionSpec
        self.last: Blank

    def refusal(self, _: Manifest) -> None:
        return None

    def limits(self, manifest: Manifest | None) -> ResourceLimits:
        return limits_of(manifest.spec, BASE) if manifest else BASE

    async def manifest(self, _: Bind) -> Manifest:
        return Manifest(tenant="acme", app="bench", function=self.spec.name, spec=self.spec, files=())

    async def blank(self, manifest: Manifest, _: SliceReport) -> Blank:
        self.last = await self._starter.start(self.limits(manifest))
        return self.last

    async def stage(self, _: Bind, __: Manifest, blank: Blank) -> None:
        shutil.copy(app.__file__, blank.code / "app.py")

    def env(self, _: SliceReport) -> Mapping[str, str]:
        return {}

    def container_changed(self) -> None:
        pass


@dataclass(kw_only=True)
class Origin:
    """The gateway of all calls: of what it hears it counts chunks, and begins a call for each that has ended."""

    dispatcher: CallDispatcher
    runs: Iterator[Run] = field(default_factory=lambda: iter(()))
    open: int = 0
    chunks: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: int = 0
    _windows: dict[str, int] = field(default_factory=dict)

    def send(self, _: str, frame: CallFrame) -> None:
        if isinstance(frame, Chunk):
            self.chunks += 1
            if frame.seq % (WINDOW // 4) == 0:
                self._soon()
                self._windows[frame.call_id] = frame.seq
            return
        assert isinstance(frame, Ended), frame
        assert frame.outcome is Outcome.OK, frame
        self._soon()
        self._ended += 1

    async def serve(self, runs: list[Run], at_once: int) -> None:
        """Give the agent all of these, so many at any time."""
        self.runs = iter(runs)
        self.done.clear()
        self.open = self._ended = min(at_once, len(runs))
        self._next()
        async with asyncio.timeout(WITHIN_S):
            await self.done.wait()

    def _soon(self) -> None:
        if not self._ended and not self._windows:
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        at = time.monotonic()
        windows, self._windows = self._windows, {}
        for call_id, upto in windows.items():
            self.dispatcher.on_control(Window(call_id=call_id, upto=upto), at)
        ended, self._ended = self._ended, 0
        for _ in range(ended):
            run = next(self.runs, None)
            if run is None:
                self.open -= 1
            else:
                self.dispatcher.on_run(run, at, at)
        if not self.open:
            self.done.set()


@dataclass(frozen=True, kw_only=True)
class Agent:
    containers: Containers
    provisioner: OneVersion
    origin: Origin

    async def bind(self, name: str, spec: FunctionSpec) -> Container:
        """A container of a function of the app, once it is ready."""
        self.provisioner.spec = msgspec.structs.replace(spec, module="app")
        bind = Bind(
            epoch=1,
            container=name,
            version=name,
            tenant="acme",
            manifest_sha256="",
            slice="cpu-0",
            host=HostShare(cpu_millis=1_000, memory=4 * 2**30),
        )
        assert self.containers.command(bind).ok
        container = self.containers.get(name)
        assert container is not None
        async with asyncio.timeout(WITHIN_S):
            while container.state is not ContainerState.READY:
                assert container.state is not ContainerState.GONE, (container.reason, container.error)
                await asyncio.sleep(0.01)
        return container

    async def stop(self, container: Container) -> None:
        container.drain(1.0, "measured")
        await container.wait_gone()
        await asyncio.sleep(0)  # its task ends, and with it its hold of the slice


@contextmanager
def agent_in(folder: Path, group: asyncio.TaskGroup) -> Iterator[Agent]:
    """The parts of an agent that a call passes, with its notes on disk and nothing of the bus."""
    bus, devices = NoBus(), CpuDevices(1)
    notes, usage_log = EndedShares(folder / "ended", "boot"), UsageLog(folder / "usage", "boot")
    metering = Metering(
        node="n1", instance="i1", region="local", slices=devices.inventory(), usage_log=usage_log,
        ended_shares=notes, store=cast("LogStore", bus),
    )  # fmt: skip
    slots, slices, work = SlotTable(instance="i1"), Slices(devices, metering), WorkLog()
    waiting = WaitingCalls(folder / "waiting", "boot")
    origin = Origin(dispatcher=cast("CallDispatcher", None))
    links = GatewayLinks(bus, region="local", node="n1", instance="i1")
    bodies = BodyTransfers(group)
    calls = NodeCalls(
        links=links,
        slots=slots,
        waiting=waiting,
        origins=cast("OriginSender", origin),
        bodies=bodies,
        nested=NestedAsks(cast("AskingBus", bus), bodies, group, region="local", node="n1", clock=time.monotonic),
        credits=Credits(
            bus, links, region="local", node="n1", instance="i1", epoch_of=slots.epoch,
            call_soon=asyncio.get_running_loop().call_soon,
        ),
    )  # fmt: skip
    launcher, base = ProcessLauncher(), own_environment("none")
    starter = BlankStarter(launcher=launcher, base=base, folder=folder / "blanks", group=group, limits=BASE)
    provisioner = OneVersion(starter)
    logs = LogShipper(cast("LogStore", bus), region="local", node="n1", instance="i1")

    def make(bind: Bind, part: SliceReport) -> Container:
        key = WorkKey(container=bind.container, version=bind.version, slice=part.id)
        meter = ContainerMeter(metering.slice(part.id), work, key)
        return Container(bind, part, provisioner=provisioner, calls=calls, meter=meter, logs=logs, parking=parking)

    host = HostBudget(HostShare(cpu_millis=8_000, memory=64 * 2**30))
    parking = NodeParking(slices, host, WarmMemory(0), metering, changed=lambda: None, clock=time.monotonic)
    containers = Containers(
        slices=slices, host=host, parking=parking, make=make,
        publisher=calls.credits, group=group, many_tenants=True, changed=lambda: None,
    )  # fmt: skip
    origin.dispatcher = CallDispatcher(containers, calls)
    beat = group.create_task(metered(metering))
    try:
        yield Agent(containers=containers, provisioner=provisioner, origin=origin)
    finally:
        beat.cancel()
        waiting.close()
        notes.close()
        usage_log.close()


async def metered(metering: Metering) -> None:
    """Write to disk each second what was used, as an agent does."""
    while True:
        await asyncio.sleep(1.0)
        await metering.write()


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a container is measured with: `count` calls, which are streams of CHUNKS if it is a generator."""

    name: str
    what: str
    spec: FunctionSpec
    named: dict[str, Any] = field(default_factory=lambda: {"text": "hello"})
    parts: int = 1
    """What is counted of one call."""

    def runs(self, container: Container, first: int, count: int) -> list[Run]:
        data, method = values.encode(self.named), self.spec.methods[0].name
        return [
            Run(
                call_id=f"call_local_1_{self.name}{number:016d}", tenant="acme", version=container.version,
                container=container.id, method=method, epoch=1, grant_number=1, gateway=GATEWAY, home=GATEWAY,
                start_within_ms=60_000.0, timeout_ms=60_000.0, input=data, window=WINDOW,
            )
            for number in range(first, first + count)
        ]  # fmt: skip


LOADS = (
    Load(name="async", what="asynchronous, 64 at a time", spec=app.echo.spec),
    Load(name="threads", what="plain, 64 at a time", spec=app.echo_sync.spec),
    Load(name="serial", what="plain, one at a time", spec=msgspec.structs.replace(app.echo_sync.spec, max_inputs=1)),
    Load(name="batched", what="batches of 32", spec=cast("Any", app.Batched).spec),
    Load(name="chunk", what="a stream's chunk", spec=app.count.spec, named={"chunks": CHUNKS}, parts=CHUNKS),
)


def cpu_ns(pids: Iterable[int]) -> int:
    """What processes and their threads have used of processors so far."""
    tasks = [task for pid in pids for task in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(task.read_text().split()[0]) for task in tasks)


async def measured(agent: Agent, load: Load, count: int) -> tuple[float, float]:
    """Microseconds of CPU that agent and guest use for one of `count` calls, or for one chunk of as many."""
    container, calls = await agent.bind(load.name, load.spec), max(1, count // load.parts)
    pids, at_once = agent.provisioner.last.sandbox.pids(), min(AT_ONCE, container.slots)
    await agent.origin.serve(load.runs(container, 0, 1 + calls // 10), at_once)
    runs = load.runs(container, 1 + calls // 10, calls)
    gc.collect()
    gc.freeze()  # the calls that are ready here would be a burden of the collector that an agent has not
    ours, theirs = time.process_time_ns(), cpu_ns(pids)
    await agent.origin.serve(runs, at_once)
    ours, theirs = time.process_time_ns() - ours, cpu_ns(pids) - theirs
    await agent.stop(container)
    return ours / calls / load.parts / 1e3, theirs / calls / load.parts / 1e3


async def measure_all(count: int, names: Collection[str], rounds: int) -> dict[str, tuple[float, float]]:
    """The medians of some rounds, in which the loads take turns."""
    found: dict[str, list[tuple[float, float]]] = {load.name: [] for load in LOADS if load.name in names}
    with tempfile.TemporaryDirectory() as folder:
        async with asyncio.TaskGroup() as group:
            with agent_in(Path(folder), group) as agent:
                for number in range(rounds):
                    for load in LOADS:
                        if load.name in found:
                            turn = dataclasses.replace(load, name=f"{load.name}{number}")
                            found[load.name].append(await measured(agent, turn, count))
    return {
        name: (report.median([ours for ours, _ in each]), report.median([theirs for _, theirs in each]))
        for name, each in found.items()
    }


def main() -> None:
    """Measure, print the table and the figures."""
    parser = report.arguments("agent_path", __doc__ or "")
    parser.add_argument("--only", choices=[load.name for load in LOADS], action="append", help="some of the loads")
    options = parser.parse_args()
    count, rounds = (6_000, 1) if options.quick else (30_000, 3)
    names = options.only or [load.name for load in LOADS]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(measure_all(count, names, rounds))
    what = {load.name: load.what for load in LOADS}
    report.table(
        "CPU time of one call",
        ("function", "agent, µs", "guest, µs"),
        [(what[name], ours, theirs) for name, (ours, theirs) in found.items()],
    )
    figures: dict[str, float] = {}
    for name, (ours, theirs) in found.items():
        end = "per_call" if name == "async" else f"per_{name}" if name == "chunk" else f"per_call_{name}"
        figures |= {f"agent_us_{end}": ours, f"guest_us_{end}": theirs}
    report.finish("agent_path", figures)


if __name__ == "__main__":
    main()
