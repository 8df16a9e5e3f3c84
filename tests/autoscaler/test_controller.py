"""The controller on a real bus, with a node that answers as a test says."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import msgspec
import pytest

from pilotlight_autoscaler.controller import SETTLE_S, Controller, subject_of_command
from pilotlight_autoscaler.world import World
from pilotlight_core.bus import Bus, connect
from pilotlight_core.host.registry import Registry
from pilotlight_core.model import subjects
from pilotlight_core.model.api.curve_api import Curve, CurvePoint, CurveSource, CurvesRecord
from pilotlight_core.model.api.placement_api import DecisionInfo
from pilotlight_core.model.devices import MigMode, MigPlacement
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_messages import Bind, CommandReply, Drain, NodeReport, Shortage, Stop
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.explaining import ExplainPlacement, PlacementTold
from pilotlight_core.model.messages.ran import BatchesRan, Ran
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.units import GpuAsk
from tests.autoscaler.builders import demand, record, report
from tests.autoscaler.fleet import FakeGpu
from tests.builders.nodes import container
from tests.builders.specs import function_spec


class ScriptedNode:
    """Answers commands; what it was told is in `commands`."""

    def __init__(self, bus: Bus, region: str) -> None:
        self.commands: list[Bind | Drain | Stop | Cut | SwitchMig] = []
        self.reply = CommandReply(ok=True)
        self.answers = True
        self._bus, self._region, self._seq = bus, region, 0
        self._decision_lines = asyncio.Event()
        self._last: NodeReport | None = None

    async def listen(self) -> None:
        await self._bus.subscribe(subjects.command(self._region, "n1"), self._on_command)

    def _on_command(self, _: str, message: Bind | Drain | Stop | Cut | SwitchMig, reply: str) -> None:
        self.commands.append(message)
        self._decision_lines.set()
        if self.answers:
            self._bus.publish_nowait(reply, self.reply)

    async def repeat(self) -> None:
        """Report what was reported last again and again, as nodes do: a controller believes no old report."""
        while True:
            await asyncio.sleep(0.25)
            if self._last is not None:
                self.report(self._last)

    def report(self, reported: NodeReport) -> None:
        self._seq += 1
        self._last = reported
        reported = msgspec.structs.replace(reported, seq=self._seq, region=self._region)
        self._bus.publish_nowait(subjects.beat(self._region, "n1"), reported)

    async def told(self, number: int) -> Bind | Drain | Stop | Cut | SwitchMig:
        """The command with that number, when it has come."""
        async with asyncio.timeout(30):
            while len(self.commands) < number:
                self._decision_lines.clear()
                await self._decision_lines.wait()
        return self.commands[number - 1]


@pytest.fixture
async def bus(server_url: str) -> AsyncIterator[Bus]:
    async with connect(server_url, name="controller-test") as bus:
        yield bus


@pytest.fixture
async def version(bus: Bus) -> VersionRecord:
    """A version that is deployed."""
    made = msgspec.structs.replace(record(f"ver_{token()}", scaledown_window=0.5), app=f"app{token(6)}")
    async with Registry(bus) as registry:
        await registry.put_version(made)
        app = AppRecord(tenant="acme", app=made.app, revision=1, functions={"greet": made.id})
        await registry.deploy(app, 0)
    return made


@pytest.fixture
async def region(bus: Bus, version: VersionRecord) -> AsyncIterator[str]:
    """A region of its own with a controller in it: tests do not hear each other."""
    name = f"r{token(6)}"
    async with (
        Registry(bus) as registry,
        Controller(bus, registry, bus.lease("controller", name), World(), region=name).running(),
    ):
        yield name


@pytest.fixture
async def node(bus: Bus, region: str) -> AsyncIterator[ScriptedNode]:
    node = ScriptedNode(bus, region)
    await node.listen()
    async with meanwhile(node.repeat()):
        yield node


@asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Something that goes on until the block ends."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def calls_wait(bus: Bus, region: str, *versions: str) -> None:
    """What homes say as long as calls wait: a controller believes no old word of theirs either."""
    while True:
        for each in versions:
            asked = msgspec.structs.replace(demand(each, queued=1), edge=True)
            bus.publish_nowait(subjects.demand(region, each), asked)
        await asyncio.sleep(0.25)


async def test_an_edge_binds_at_once_and_a_tick_does_not_bind_again(
    bus: Bus, node: ScriptedNode, region: str, version: VersionRecord
) -> None:
    """One bind for one waiting call, under the lease's epoch, whatever is repeated."""
    node.report(report())
    async with meanwhile(calls_wait(bus, region, version.id)):
        first = await node.told(1)
    assert isinstance(first, Bind)
    assert first.epoch > 0
    node.report(report(container(first.container, version.id, running=1, slice=first.slice)))
    bus.publish_nowait(subjects.demand(region, version.id), demand(version.id, running=1))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.8):
            await node.told(2)


async def test_idle_containers_are_drained_after_the_window(node: ScriptedNode, version: VersionRecord) -> None:
    """Scale to zero, by the agent's own word on idleness."""
    async with asyncio.timeout(30):
        while not node.commands:  # a report each fifth of a second, as a node's clock would make them
            node.report(report(container("c1", version.id, idle_s=9.0)))
            await asyncio.sleep(0.2)

    drain = await node.told(1)
    assert isinstance(drain, Drain)
    assert drain.container == "c1"
    assert "idle" in drain.reason


async def test_a_drain_that_is_lost_is_decided_again(node: ScriptedNode, version: VersionRecord) -> None:
    """As soon as nobody has answered: the container is idle still, by its agent's word."""
    node.answers = False

    async def reports() -> None:
        while True:
            node.report(report(container("c1", version.id, idle_s=9.0)))
            await asyncio.sleep(0.2)

    async with asyncio.TaskGroup() as group:
        telling = group.create_task(reports())
        first, second = await node.told(1), await node.told(2)
        telling.cancel()

    assert (type(first), type(second)) == (Drain, Drain)
    assert subject_of_command(first) == subject_of_command(second) == "c1"


async def test_a_shortage_is_said_in_words(bus: Bus, node: ScriptedNode, region: str, version: VersionRecord) -> None:
    """Without a free slice, the calls' home hears why."""
    heard: asyncio.Queue[Shortage] = asyncio.Queue()
    await bus.subscribe(subjects.shortage(region), lambda _, message, __: heard.put_nowait(message))
    await bus.flush()
    node.report(report(container("busy", "ver_other", running=1), slots=1))

    async with asyncio.timeout(30), meanwhile(calls_wait(bus, region, version.id)):
        shortage = await heard.get()
    assert shortage.version == version.id
    assert "in use" in shortage.reason
    assert not shortage.never


async def test_a_refused_bind_is_decided_again(
    bus: Bus, node: ScriptedNode, region: str, version: VersionRecord
) -> None:
    """The agent's word counts: the next tick chooses anew, with another id."""
    node.reply = CommandReply(ok=False, reason="slice_taken")
    node.report(report())
    async with meanwhile(calls_wait(bus, region, version.id)):
        first, second = await node.told(1), await node.told(2)

    assert isinstance(second, Bind)
    assert subject_of_command(first) != subject_of_command(second)


async def test_a_version_that_cannot_be_decided_on_stops_nobody_else(bus: Bus, version: VersionRecord) -> None:
    """A curve was kept that no check would let in today: its version is set aside, the others are placed."""
    bad = msgspec.structs.replace(version, id=f"ver_{token()}", number=2)
    nonsense = CurvePoint(batch=1, throughput=1.0, p50_ms=0.0, p95_ms=0.0, samples=1)
    curve = Curve(gpu="CPU", slice="slot", source=CurveSource.MEASURED, points=(nonsense,))
    region = f"r{token(6)}"
    node = ScriptedNode(bus, region)
    await node.listen()
    async with Registry(bus) as registry:
        await registry.put_version(bad)
        await registry.change_curves(bad.id, lambda _: CurvesRecord(version=bad.id, curves=(curve,)))
    node.report(report())

    async with (
        Registry(bus) as registry,  # which knows the curve before anything is decided
        Controller(bus, registry, bus.lease("controller", region), World(), region=region).running(),
        meanwhile(node.repeat()),
        meanwhile(calls_wait(bus, region, bad.id, version.id)),
    ):
        bind = await node.told(1)

    assert isinstance(bind, Bind)
    assert bind.version == version.id


async def test_a_new_leader_says_nothing_of_a_fleet_it_has_not_heard(
    bus: Bus, region: str, version: VersionRecord
) -> None:
    """Otherwise leaders that die one after the other would make callers give up on a fleet that is there."""
    heard: asyncio.Queue[Shortage] = asyncio.Queue()
    await bus.subscribe(subjects.shortage(region), lambda _, message, __: heard.put_nowait(message))
    began = time.monotonic()

    async with asyncio.timeout(30):
        while heard.empty():
            bus.publish_nowait(subjects.demand(region, version.id), demand(version=version.id, queued=1))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.25):
                    heard.put_nowait(await heard.get())

    assert heard.get_nowait().never
    assert time.monotonic() - began > SETTLE_S - 0.1


async def test_whoever_leads_says_why(bus: Bus, node: ScriptedNode, region: str, version: VersionRecord) -> None:
    """A question over the bus, answered from the decision that sent the bind."""
    node.report(report())
    async with meanwhile(calls_wait(bus, region, version.id)):
        bind = await node.told(1)
    assert isinstance(bind, Bind)

    told = await bus.request(subjects.explain(region), ExplainPlacement(container=bind.container), 30.0)

    assert isinstance(told, PlacementTold)
    assert told.lines[0].startswith(f"{bind.container} starts on a CPU slot on n1: {version.ref}, placed ")
    (decision,) = msgspec.json.decode(told.decisions, type=tuple[DecisionInfo, ...])
    assert abs(datetime.fromisoformat(decision.decided_at).timestamp() - time.time()) < 60.0


async def test_a_plan_goes_on_as_soon_as_reports_show_it_may(
    bus: Bus, node: ScriptedNode, region: str, version: VersionRecord
) -> None:
    """The GPU is cut, and the bind follows the report that shows its instance."""
    made = msgspec.structs.replace(
        version, id=f"ver_{token()}", spec=function_spec(gpu=(GpuAsk("H100"),), vram=8 * 2**30), number=2
    )
    async with Registry(bus) as registry:
        await registry.put_version(made)
    gpu = FakeGpu(id="GPU-1", kind="H100-80GB", mig=MigMode.ON)
    node.report(report(devices=(gpu.report({}),)))

    async with meanwhile(calls_wait(bus, region, made.id)):
        cut = await node.told(1)
        assert isinstance(cut, Cut)
        gpu.instances = {MigPlacement(start=place.start, profile=place.profile) for place in cut.create}
        node.report(report(devices=(gpu.report({}),)))
        bind = await node.told(2)

    assert isinstance(bind, Bind)
    assert bind.slice == "GPU-1:1g@6"


async def test_what_ran_is_kept_beside_its_version(
    bus: Bus, node: ScriptedNode, region: str, version: VersionRecord
) -> None:
    """Learnt by whoever leads, from reports of work; the registry has it for everybody."""
    done = BatchesRan(container="c1", version=version.id, slice="cpu-0", batch=2, count=40, ms=(10.0, 10.0))
    async with Registry(bus) as registry, asyncio.timeout(30):
        while (known := registry.curves(version.id)) is None:
            node.report(report(container("c1", version.id, running=1)))
            bus.publish_nowait(subjects.ran(region, "n1"), Ran(node="n1", instance="i1", batches=(done,)))
            await asyncio.sleep(0.1)

    (curve,) = known.curves
    assert (curve.gpu, curve.slice, curve.source) == ("CPU", "slot", CurveSource.LEARNT)
    assert [(point.batch, point.throughput) for point in curve.points] == [(2, 200.0)]


async def test_a_leader_that_knows_its_fleet_says_so_once(bus: Bus, version: VersionRecord) -> None:
    """Then what it knows is taken out of the garbage collector's way."""
    name, told = f"r{token(6)}", asyncio.Queue[str]()
    async with (
        Registry(bus) as registry,
        Controller(
            bus,
            registry,
            bus.lease("controller", name),
            World(),
            region=name,
            on_settled=lambda: told.put_nowait("settled"),
        ).running(),
        asyncio.timeout(2 * SETTLE_S + 30),
    ):
        assert await told.get() == "settled"
        await asyncio.sleep(0.6)  # two more ticks

    assert told.empty()
