"""The controller on a real bus, with a scripted node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import datetime

import msgspec
import pytest

from pilotlight_autoscaler import controller, memory_store
from pilotlight_autoscaler.bindings.binding_terms import host_terms
from pilotlight_autoscaler.command_sender import subject_of_command
from pilotlight_autoscaler.controller import SETTLE_S, Controller
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.policy.prediction.function_memory import FunctionMemory
from pilotlight_core.bus import Bus, NoResponders, connect
from pilotlight_core.host.binding_book import key_of
from pilotlight_core.host.registry import Registry
from pilotlight_core.model import subjects
from pilotlight_core.model.api.curve_api import Curve, CurvePoint, CurveSource, CurvesRecord
from pilotlight_core.model.api.placement_api import DecisionInfo
from pilotlight_core.model.api.scaling_api import ScalingExplanation
from pilotlight_core.model.devices import MigMode, MigPlacement
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.controller_questions import (
    ContainerStopReply,
    ExplainPlacement,
    PlacementReply,
    StopContainer,
)
from pilotlight_core.model.messages.demand import Demands
from pilotlight_core.model.messages.device_commands import Cut
from pilotlight_core.model.messages.job_messages import JobsDue, PlannedStarts
from pilotlight_core.model.messages.node_messages import (
    STOP_GRACE_S,
    Bind,
    CommandReply,
    Drain,
    Shortages,
)
from pilotlight_core.model.messages.ran import BatchesRan, Ran
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_core.model.units import GpuAsk
from tests.autoscaler.builders import demand, record, report
from tests.autoscaler.fleet import FakeGpu
from tests.autoscaler.scripted_node import CountingWorld, ScriptedNode, repeated
from tests.builders.nodes import binding, container
from tests.builders.specs import function_spec
from tests.waiting import until


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
def world() -> CountingWorld:
    return CountingWorld()


@pytest.fixture
async def region(bus: Bus, version: VersionRecord, world: CountingWorld) -> AsyncIterator[str]:
    """A region with a controller, of this test alone."""
    name = f"r{token(6)}"
    async with (
        Registry(bus) as registry,
        Controller(bus, registry, bus.lease("controller", name), world, region=name).running(),
    ):
        yield name


@pytest.fixture
async def node(bus: Bus, region: str) -> AsyncIterator[ScriptedNode]:
    node = ScriptedNode(bus, region)
    await node.listen()
    async with repeated(node.repeat):
        yield node


def calls_wait(bus: Bus, region: str, *versions: str) -> AbstractAsyncContextManager[None]:
    """Calls of these versions wait until the block ends: their homes repeat the demand."""

    def send() -> None:
        items = tuple(demand(each, queued=1, edge=True) for each in versions)
        bus.publish_nowait(subjects.demands(region, 3), Demands(gateway="g", shard=3, items=items))

    return repeated(send)


async def test_jobs_whose_time_comes_have_a_container_before_anybody_calls(
    bus: Bus, node: ScriptedNode, region: str, version: VersionRecord
) -> None:
    """Started as early as a start takes."""
    node.report(report())
    told = PlannedStarts(items=(JobsDue(f"acme:{version.app}.greet", 1_000.0, 1),))
    async with repeated(lambda: bus.publish_nowait(subjects.planned(region, "g"), told)):
        first = await node.command(1)
    assert isinstance(first, Bind)
    assert (first.version, first.purpose) == (version.id, Purpose.CALL)


async def test_an_edge_binds_at_once_and_a_tick_does_not_bind_again(
    bus: Bus, node: ScriptedNode, region: str, version: VersionRecord, world: CountingWorld
) -> None:
    """One bind for one waiting call, under the lease's epoch, whatever is repeated."""
    node.report(report())
    async with calls_wait(bus, region, version.id):
        first = await node.command(1)
    assert isinstance(first, Bind)
    assert first.epoch > 0
    # Millionths of a core beside the slot's, and of a GiB: what its binding says, it meters.
    assert (first.core_ppm, first.gib_ppm) == host_terms(first.host, 250_000, "cpu")
    assert first.gib_ppm > 0
    node.report(report(container(first.container, version.id, running=1, slice=first.slice)))
    running = Demands(gateway="g", shard=3, items=(demand(version.id, running=1),))
    bus.publish_nowait(subjects.demands(region, 3), running)
    await world.wait_passes(bus)

    assert node.commands == [first]


async def test_gateways_of_the_release_before_are_heard(
    bus: Bus, node: ScriptedNode, region: str, version: VersionRecord
) -> None:
    """They tell the demand of each version alone, on a subject of its own, until they are upgraded too."""
    node.report(report())
    await bus.flush()
    edge = demand(version.id, queued=1, edge=True)
    async with repeated(lambda: bus.publish_nowait(subjects.demand(region, version.id), edge)):
        first = await node.command(1)

    assert isinstance(first, Bind)
    assert first.version == version.id


async def test_idle_containers_are_drained_after_the_window(node: ScriptedNode, version: VersionRecord) -> None:
    """Scale to zero, by the agent's report of idleness."""
    await node.own(report(container("c1", version.id, idle_s=9.0)))

    drain = await node.command(1)
    assert isinstance(drain, Drain)
    assert drain.container == "c1"
    assert "idle" in drain.reason


async def test_a_leader_that_does_not_know_the_past_writes_nothing_over_it(
    bus: Bus, version: VersionRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it remove containers that the past may keep, until it knows; it reads again."""
    monkeypatch.setattr(memory_store, "READ_S", 0.0)
    monkeypatch.setattr(controller, "RECALL_EVERY_S", 0.05)
    region, world = f"r{token(6)}", CountingWorld()
    key = f"{region}.acme.{version.app}.greet"
    at = time.time()
    known = FunctionMemory(60.0, at - 3_600.0)
    for minute in range(60, -1, -1):  # it knows more than whoever leads for a minute
        known.observe(1, at - 60.0 * minute)
    known.service_s = 42.0
    await bus.kv(subjects.SCALING_BUCKET).put(key, known.record())
    node = ScriptedNode(bus, region)
    await node.listen()
    started = {"load": 10.0}
    async with (
        Registry(bus) as registry,
        Controller(bus, registry, bus.lease("controller", region), world, region=region).running(),
        repeated(node.repeat),
    ):
        await node.own(report(container("c1", version.id, idle_s=9.0, timeline=started, age_s=99.0)))
        await until(lambda: world.scaling.changed)
        await asyncio.sleep(SETTLE_S)  # whoever knows the past would remove it by then
        await world.wait_passes(bus)
        stored = await bus.kv(subjects.SCALING_BUCKET).get(key)
        assert stored is not None
        assert (stored.value, node.commands) == (known.record(), [])

        monkeypatch.undo()
        assert isinstance(await node.command(1), Drain)
        memory = world.scaling.get(f"acme:{version.app}.greet")
        assert memory is not None
        assert memory.service_s == 42.0


async def test_a_drain_that_is_lost_is_decided_again(node: ScriptedNode, version: VersionRecord) -> None:
    """As soon as its time to answer is over: the container is still idle, by its agent's report."""
    node.answers = False
    await node.own(report(container("c1", version.id, idle_s=9.0)))

    first, second = await node.command(1), await node.command(2)

    assert (type(first), type(second)) == (Drain, Drain)
    assert subject_of_command(first) == subject_of_command(second) == "c1"


async def test_a_shortage_is_said_in_words(bus: Bus, node: ScriptedNode, region: str, version: VersionRecord) -> None:
    """Without a free slice, the home of the calls gets the reason."""
    heard: asyncio.Queue[Shortages] = asyncio.Queue()
    await bus.subscribe(subjects.shortages(region), lambda _, message, __: heard.put_nowait(message))
    await bus.flush()
    await node.own(report(container("busy", "ver_other", running=1), slots=1))

    async with asyncio.timeout(120), calls_wait(bus, region, version.id):
        (shortage,) = (await heard.get()).items
    assert shortage.version == version.id
    assert "in use" in shortage.reason
    assert not shortage.never


async def test_a_refused_bind_is_decided_again(
    bus: Bus, node: ScriptedNode, region: str, version: VersionRecord
) -> None:
    """The next tick chooses again, with another container id."""
    node.reply = CommandReply(ok=False, reason="slice_taken")
    node.report(report())
    async with calls_wait(bus, region, version.id):
        first, second = await node.command(1), await node.command(2)

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
        repeated(node.repeat),
        calls_wait(bus, region, bad.id, version.id),
    ):
        bind = await node.command(1)

    assert isinstance(bind, Bind)
    assert bind.version == version.id


async def test_a_new_leader_says_nothing_of_a_fleet_it_has_not_heard(
    bus: Bus, region: str, version: VersionRecord
) -> None:
    """Otherwise a series of short-lived leaders would make callers give up although the fleet is there."""
    heard: asyncio.Queue[Shortages] = asyncio.Queue()
    await bus.subscribe(subjects.shortages(region), lambda _, message, __: heard.put_nowait(message))
    began = time.monotonic()

    async with asyncio.timeout(120), calls_wait(bus, region, version.id):
        (shortage,) = (await heard.get()).items

    assert shortage.never
    assert time.monotonic() - began > SETTLE_S - 0.1


async def test_a_new_leader_takes_for_there_what_is_bound_on_nodes_that_it_has_not_heard(
    bus: Bus, version: VersionRecord
) -> None:
    """Else it would start once more what runs there already; a node that stays silent counts no more after a while."""
    region = f"r{token(6)}"
    bound = binding("ctr_there", version.id, node="n9", tenant="acme", function=f"acme:{version.app}.greet")
    await bus.kv(subjects.BINDING_BUCKET).put(key_of(region, bound), msgspec.msgpack.encode(bound))
    node = ScriptedNode(bus, region)
    await node.listen()
    began = time.monotonic()
    async with (
        Registry(bus) as registry,
        Controller(bus, registry, bus.lease("controller", region), World(), region=region).running(),
        repeated(node.repeat),
        calls_wait(bus, region, version.id),
    ):
        node.report(report())
        bind = await node.command(1)

    assert isinstance(bind, Bind)
    assert time.monotonic() - began > SETTLE_S - 0.1


async def test_whoever_leads_says_why(bus: Bus, node: ScriptedNode, region: str, version: VersionRecord) -> None:
    """The answer comes from the decision that sent the bind."""
    node.report(report())
    async with calls_wait(bus, region, version.id):
        bind = await node.command(1)
    assert isinstance(bind, Bind)

    told = await bus.request(subjects.explain(region), ExplainPlacement(container=bind.container), 30.0)

    assert isinstance(told, PlacementReply)
    assert told.lines[0].startswith(f"{bind.container} starts on a CPU slot on n1: {version.ref}, placed ")
    (decision,) = msgspec.json.decode(told.decisions, type=tuple[DecisionInfo, ...])
    assert abs(datetime.fromisoformat(decision.decided_at).timestamp() - time.time()) < 60.0


async def test_whoever_leads_ends_a_container(bus: Bus, node: ScriptedNode, region: str, world: CountingWorld) -> None:
    """That somebody has asked for; under its own lease."""
    await node.own(report(container("ctr_1", running=1)))
    await until(lambda: world.state("ctr_1") is not None)

    asked = StopContainer(container="ctr_1", tenant="acme", reason="stopped by its owner")
    told = await bus.request(subjects.stop_container(region), asked, 30.0)

    assert told == ContainerStopReply(node="n1", within_ms=STOP_GRACE_S * 1000.0)
    drains = [command for command in node.commands if isinstance(command, Drain) and "owner" in command.reason]
    assert [drain.container for drain in drains] == ["ctr_1"]


@pytest.mark.parametrize("how", ["stop", "disable"])
async def test_what_is_shut_down_is_ended_with_what_it_runs(
    bus: Bus, node: ScriptedNode, region: str, version: VersionRecord, how: str
) -> None:
    """The containers of a stopped app and of a disabled tenant have a grace, whatever they do."""
    tenant = f"t{token(6)}"
    mine = msgspec.structs.replace(version, id=f"ver_{token()}", tenant=tenant)
    async with Registry(bus) as registry:
        await registry.put_tenant(TenantRecord(name=tenant, created_at=0.0))
        await registry.put_version(mine)
        app = AppRecord(tenant=tenant, app=mine.app, revision=1, functions={"greet": mine.id})
        await registry.deploy(app, 0)
        await node.own(report(container("ctr_1", mine.id, tenant=tenant, running=1)))

        if how == "stop":
            await registry.deploy(msgspec.structs.replace(app, revision=2, stopped=True), 1)
        else:
            await registry.put_tenant(TenantRecord(name=tenant, created_at=0.0, disabled=True))

        drain = await node.command(1)
    assert isinstance(drain, Drain)
    assert (drain.container, drain.within_ms) == ("ctr_1", STOP_GRACE_S * 1000.0)
    assert drain.reason in ("its app is stopped", "its tenant is disabled")


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

    async with calls_wait(bus, region, made.id):
        cut = await node.command(1)
        assert isinstance(cut, Cut)
        gpu.instances = {MigPlacement(start=place.start, profile=place.profile) for place in cut.create}
        node.report(report(devices=(gpu.report({}),)))
        bind = await node.command(2)

    assert isinstance(bind, Bind)
    assert bind.slice == "GPU-1:1g@6"


async def test_what_ran_is_kept_beside_its_version(
    bus: Bus, node: ScriptedNode, region: str, version: VersionRecord
) -> None:
    """The leader learns it from reports of batches; every process reads it in the registry."""
    done = BatchesRan(container="c1", version=version.id, slice="cpu-0", batch=2, count=40, ms=(10.0, 10.0))
    ran = Ran(node="n1", instance="i1", batches=(done,))
    await node.own(report(container("c1", version.id, running=1)))
    async with Registry(bus) as registry, repeated(lambda: bus.publish_nowait(subjects.ran(region, "n1"), ran)):
        await until(lambda: registry.curves(version.id))
        known = registry.curves(version.id)

    assert known is not None
    (curve,) = known.curves
    assert (curve.gpu, curve.slice, curve.source) == ("CPU", "slot", CurveSource.LEARNT)
    assert [(point.batch, point.throughput) for point in curve.points] == [(2, 200.0)]


async def test_what_a_leader_remembers_of_a_function_the_next_one_knows(bus: Bus, version: VersionRecord) -> None:
    """A leader that leaves in order stores what it has not stored yet."""
    region, function = f"r{token(6)}", f"acme:{version.app}.greet"
    first, second = CountingWorld(), CountingWorld()
    memory = FunctionMemory(60.0, time.time())
    memory.on_load(22.0)
    first.scaling.restore({function: memory})
    first.scaling.changed[function] = None

    async def lead(world: World) -> None:
        async with Registry(bus) as registry:
            controller = Controller(bus, registry, bus.lease("controller", region), world, region=region)
            async with controller.running(), asyncio.timeout(120):
                # Before it has read what is stored it stores nothing.
                await until(
                    lambda: controller.leads and controller._recalls and world.scaling.get(function) is not None
                )

    await lead(first)
    await lead(second)
    known = second.scaling.get(function)
    assert known is not None
    assert known.load_s == 22.0


async def test_a_leader_that_knows_its_fleet_says_so_once(bus: Bus, version: VersionRecord) -> None:
    """Then the process freezes its objects for the garbage collector."""
    name, world, settled = f"r{token(6)}", CountingWorld(), asyncio.Queue[str]()
    async with (
        Registry(bus) as registry,
        Controller(
            bus,
            registry,
            bus.lease("controller", name),
            world,
            region=name,
            on_settled=lambda: settled.put_nowait("settled"),
        ).running(),
        asyncio.timeout(2 * SETTLE_S + 30),
    ):
        assert await settled.get() == "settled"
        await world.wait_passes(bus)

    assert settled.empty()


async def test_one_that_advises_decides_and_does_nothing(bus: Bus, version: VersionRecord) -> None:
    """It says what it would have, beside a leader or without one, and takes no lease."""
    region, world = f"r{token(6)}", CountingWorld()
    node, shortages = ScriptedNode(bus, region), list[object]()
    await node.listen()
    await bus.subscribe(subjects.shortages(region), lambda _, message, __: shortages.extend(message.items))
    node.report(report())
    lease = bus.lease("controller", region)
    function = f"acme:{version.app}.greet"
    async with (
        Registry(bus) as registry,
        Controller(bus, registry, lease, world, region=region, advises=True).running(),
        repeated(node.repeat),
        calls_wait(bus, region, version.id, f"ver_{token()}"),
    ):
        await until(lambda: world.wishes.of_function(function))
        await world.wait_passes(bus)
        asked = ExplainPlacement(function=function, scaling=True)
        told = await bus.request(subjects.advice(region), asked, 30.0)
        with pytest.raises(NoResponders):
            await bus.request(subjects.explain(region), asked, 30.0)
        with pytest.raises(NoResponders):
            await bus.request(subjects.stop_container(region), StopContainer(container="c", tenant="acme"), 30.0)

    assert isinstance(told, PlacementReply)
    advice = msgspec.json.decode(told.scaling, type=ScalingExplanation)
    assert advice.lines[0].startswith("It wants 1 container (calls)")
    assert (node.commands, shortages, lease.valid(time.monotonic())) == ([], [], False)
