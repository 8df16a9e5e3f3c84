"""Containers that are parked and unparked by a real agent, in real sandboxes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.model.devices import MEMORY_DEVICE, WARM_PRICE, MigPlacement, SliceName
from pilotlight_core.model.messages.call_messages import Refusal
from pilotlight_core.model.messages.device_commands import Cut
from pilotlight_core.model.messages.node_messages import (
    GIVING_WAY,
    ContainerState,
    Credit,
    Drain,
    Keep,
    Park,
    Stop,
    Unpark,
)
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.units import GpuAsk
from pilotlight_runtime.containers.parking import PARK_S
from pilotlight_runtime.devices.fake.fake_nvml import FakeGpu, FakeNvml
from tests.builders.specs import method
from tests.runtime.gpus import devices, machine
from tests.runtime.harness import WITHIN, Harness, agent, everybody, harness

MIB, GIB = 2**20, 2**30
COUNT = """
number = 0
def f():
    global number
    number += 1
    return number
"""

LARGE = COUNT + 'held = b"x" * 50 * 2**20\n'
UUID = "GPU-11111111-2222-4333-8444-555555555555"
MODEL = """
class Model:
    place = "gpu"
    def leave(self): self.place = "host"
    def come_back(self): self.place += " and gpu"
    def f(self): return self.place
"""
SLOW = MODEL.replace('self.place = "host"', 'print("goes", flush=True); sleep(0.5)').replace(
    'self.place += " and gpu"', 'print("comes", flush=True); sleep(0.5)'
)
SLOW = "from time import sleep\n" + SLOW
HANGING = SLOW.replace("sleep(0.5)", "sleep(1e6)")
LEAVING = MODEL.replace('def leave(self): self.place = "host"', 'def bye(self): print("goodbye", flush=True)')
METHOD: dict[str, Any] = {"methods": (method(name="f", attribute="f"),)}
FAILING = MODEL.replace('self.place = "host"', 'raise RuntimeError("out of memory")')
HOOKS: dict[str, Any] = {"is_class": True, "qualname": "Model", "park": ("leave",), "unpark": ("come_back",)}
ON_GPU: dict[str, Any] = {"gpu": (GpuAsk("H100"),), "methods": (method(name="f", attribute="f"),)}


@pytest.fixture
async def walled(server_url: str, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Harness]:
    """An agent with bubblewrap, two CPU slots, and memory for what is parked."""
    async with harness(server_url, tmp_path, sandbox="bubblewrap", warm_memory=GIB) as world:
        yield world


async def parked(world: Harness, container: str) -> None:
    """Park it, and wait until its slot is free."""
    assert (await world.command(Park(epoch=world.epoch, container=container))).ok
    await world.report(
        lambda report: (
            [(one.state, one.slice) for one in report.containers if one.id == container]
            == [(ContainerState.PARKED, "")]
        )
    )


async def awake(world: Harness, container: str) -> None:
    """Wait until it serves again."""
    async with asyncio.timeout(WITHIN):
        while not is_back(world.credits[container][-1]):
            await world.news()


def is_back(credit: Credit) -> bool:
    return credit.state is ContainerState.READY and list(credit.timeline) == ["unpark"]


async def test_a_parked_container_keeps_its_memory_and_gives_its_slot_back(walled: Harness) -> None:
    """Another one runs there; it comes back on the slot that is free, and knows what it knew."""
    container = await walled.bind(await walled.deploy(COUNT))
    assert await walled.run(container).output() == 1

    await parked(walled, container)

    assert not any(part.container for part in walled.reports[-1].slices)
    memory = walled.reports[-1].memory
    assert memory is not None
    assert 0 < memory.parked < GIB
    assert (await walled.run(container).refused()).reason is Refusal.DRAINING
    other = await walled.bind(await walled.deploy(COUNT), "cpu-0")
    taken = await walled.command(Unpark(epoch=walled.epoch, container=container, slice="cpu-0"))
    assert taken.reason == "slice_taken"
    assert (await walled.command(Unpark(epoch=walled.epoch, container=container, slice="cpu-1"))).ok
    await awake(walled, container)
    assert await walled.run(container).output() == 2
    assert await walled.run(other).output() == 1
    assert walled.agent._parts.containers.memory.parked == 0


async def test_who_is_called_back_in_time_stays_on_its_slice(walled: Harness) -> None:
    """The call came while it was being parked: it serves, and no memory is kept for it."""
    container = await walled.bind(await walled.deploy(COUNT))
    assert await walled.run(container).output() == 1
    there = walled.agent._parts.containers.get(container)
    assert there is not None

    assert there.park(1.0) == ""
    assert there.unpark("cpu-1", Purpose.CALL) == "not_parked"
    assert there.unpark("cpu-0", Purpose.CALL) == ""

    await awake(walled, container)
    assert await walled.run(container).output() == 2
    await walled.report(lambda report: report.memory.parked == 0 and report.slices[0].container == container)


async def test_what_it_uses_is_metered_on_the_memory_alone(walled: Harness) -> None:
    """For the platform's guess that it is called again; its slot is free meanwhile, and no nanosecond is lost."""
    container = await walled.bind(await walled.deploy(COUNT))
    await parked(walled, container)
    late = Keep(epoch=walled.epoch, container=container, purpose=Purpose.CALL)
    assert (await walled.command(late)).ok  # it was sent while the container served
    assert (await walled.command(Unpark(epoch=walled.epoch, container=container, slice="cpu-1"))).ok
    await awake(walled, container)
    assert await walled.run(container).output() == 1

    events = await walled.usage(lambda events: any(each.slice == "cpu-1" and each.tenant for each in events))

    (memory,) = [each for each in events if each.state is LeaseState.PARKED]
    assert (memory.device, memory.price, memory.container) == (MEMORY_DEVICE, WARM_PRICE, container)
    assert (memory.purpose, memory.used, memory.core_ppm) == (Purpose.PREWARM, False, 0)
    assert memory.gib_ppm == memory.memory * 1_000_000 // GIB > 0
    assert {each.purpose for each in events if each.slice == "cpu-1" and each.tenant} == {Purpose.CALL}
    assert not [each for each in events if each.slice == "cpu-0" and each.tenant and each.t1 > memory.t0]


async def test_it_ends_while_it_is_parked(walled: Harness) -> None:
    """By a drain its exit hooks run, by a stop they do not; nothing of it is left, frozen or not."""
    for drains in (True, False):
        container = await walled.bind(await walled.deploy(COUNT))
        await parked(walled, container)
        drain = Drain(epoch=walled.epoch, container=container, within_ms=1_000.0)
        assert (await walled.command(drain if drains else Stop(epoch=walled.epoch, container=container))).ok
        await walled.report(lambda report: not report.containers and report.memory.parked == 0)
        walled.agent.check_integrity()


async def test_what_is_about_to_end_takes_no_slot(walled: Harness) -> None:
    """Its memory is another's already, though it is not gone yet: the call goes elsewhere."""
    container = await walled.bind(await walled.deploy(COUNT))
    await parked(walled, container)
    there = walled.agent._parts.containers.get(container)
    assert there is not None

    there._evicted()

    assert there.unpark("cpu-0", Purpose.CALL) == "not_parked"
    await there.wait_gone()
    walled.agent.check_integrity()


async def test_what_does_not_fit_ends(server_url: str, tmp_path: Path) -> None:
    """There is memory for one: what came a moment ago stays, and the next one is not kept."""
    async with harness(server_url, tmp_path, sandbox="bubblewrap", warm_memory=90 * MIB) as world:
        large = await world.deploy(LARGE)
        first = await world.bind(large)
        await parked(world, first)
        second = await world.bind(large)

        assert (await world.command(Park(epoch=world.epoch, container=second))).ok

        await world.report(lambda report: [one.id for one in report.containers] == [first])


async def test_what_has_grown_beyond_the_room_ends_by_itself(walled: Harness) -> None:
    """It is frozen already when that is seen: its exit hooks run nevertheless."""
    container = await walled.bind(
        await walled.deploy(LEAVING, is_class=True, qualname="Model", **METHOD, exit=("bye",))
    )
    there = walled.agent._parts.containers.get(container)
    assert there is not None
    assert there._start.blank is not None
    grows = iter((MIB, 2 * GIB))
    there._start.blank.sandbox.memory_bytes = lambda: next(grows)  # type: ignore[method-assign]

    assert there.park(1.0) == ""
    await there.wait_gone()

    assert "no room to park it" in there.reason
    await walled.logs(lambda lines: any("goodbye" in line.text for line in lines))


async def test_plain_processes_are_not_parked(server_url: str, tmp_path: Path) -> None:
    """Whatever has left their group would run on: it ends, as it would have without."""
    async with harness(server_url, tmp_path, warm_memory=GIB) as world:
        container = await world.bind(await world.deploy(COUNT))

        assert (await world.command(Park(epoch=world.epoch, container=container))).ok

        await world.report(lambda report: not report.containers)


async def test_a_busy_container_is_not_parked(walled: Harness) -> None:
    """Nor one that is not there, nor one of a node that keeps no memory for it."""
    container = await walled.bind(await walled.deploy("def f():\n    import time\n    time.sleep(0.3)\n"))
    call = walled.run(container)
    await call.wait(1)

    assert (await walled.command(Park(epoch=walled.epoch, container=container))).reason == "busy"
    assert (await walled.command(Park(epoch=walled.epoch, container="ctr_gone"))).reason == "gone"
    unpark = Unpark(epoch=walled.epoch, container=container, slice="cpu-1")
    assert (await walled.command(unpark)).reason == "not_parked"
    await call.ended()


async def test_a_class_with_hooks_leaves_its_gpu_and_returns_to_it(server_url: str, tmp_path: Path) -> None:
    """Only to that one. Who has no hooks is not parked on a GPU."""
    async with (
        devices(FakeNvml([FakeGpu(uuid=UUID), FakeGpu()])) as gpus,
        everybody(server_url, tmp_path) as world,
        agent(world, sandbox="bubblewrap", blanks=0, gpus=gpus, warm_memory=GIB),
    ):
        plain = await world.bind(await world.deploy(COUNT, gpu=(GpuAsk("H100"),)), UUID)
        assert (await world.command(Park(epoch=world.epoch, container=plain))).reason == "cannot_park"
        assert (await world.command(Stop(epoch=world.epoch, container=plain))).ok
        await world.report(lambda report: not report.containers)
        container = await world.bind(await world.deploy(MODEL, **ON_GPU, **HOOKS), UUID)
        await world.report(lambda report: [one.parks for one in report.containers] == [UUID])
        await parked(world, container)
        other = next(part.id for part in world.reports[-1].slices if part.id not in (UUID, "cpu-0", "cpu-1"))
        assert (await world.command(Unpark(epoch=world.epoch, container=container, slice=other))).reason
        assert (await world.command(Unpark(epoch=world.epoch, container=container, slice=UUID))).ok
        await awake(world, container)

        assert await world.run(container).output() == "host and gpu"


async def test_another_tenant_ends_what_is_parked_on_a_gpu_that_it_needs(server_url: str, tmp_path: Path) -> None:
    """It may keep a context there, which is memory of the GPU; one of the same tenant does not mind."""
    async with (
        devices(FakeNvml([FakeGpu(uuid=UUID)])) as gpus,
        everybody(server_url, tmp_path) as world,
        agent(world, sandbox="bubblewrap", blanks=0, gpus=gpus, warm_memory=GIB),
    ):
        await parked(world, await world.bind(await world.deploy(MODEL, **ON_GPU, **HOOKS), UUID))
        rival = world.bind_of(await world.deploy(COUNT, tenant="rival", gpu=(GpuAsk("H100"),)), UUID)

        assert (await world.command(rival)).reason == GIVING_WAY

        await world.report(lambda report: not report.containers)
        assert (await world.command(rival)).ok


async def test_a_gpu_is_not_cut_under_what_is_parked_there(server_url: str, tmp_path: Path) -> None:
    """What is parked ends first, for it is kept for calls that may come; the command is carried out when it is gone."""
    half = MigPlacement(start=0, profile="3g")
    async with (
        devices(machine("1xH100:mig", tmp_path)) as gpus,
        everybody(server_url, tmp_path) as world,
        agent(world, sandbox="bubblewrap", blanks=0, gpus=gpus, warm_memory=GIB),
    ):
        gpu = (await world.report(lambda report: report.devices)).devices[0].id
        assert (await world.command(Cut(epoch=world.epoch, device=gpu, create=(half,)))).ok
        await world.report(lambda report: report.devices[0].instances)
        slice_ = str(SliceName(devices=(gpu,), profile="3g", start=0))
        await parked(world, await world.bind(await world.deploy(MODEL, **ON_GPU, **HOOKS), slice_))
        away = Cut(epoch=world.epoch, device=gpu, destroy=(half,))

        assert (await world.command(away)).reason == "changing"

        await world.report(lambda report: not report.containers and report.memory.parked == 0)
        assert (await world.command(away)).ok
        await world.report(lambda report: not report.devices[0].instances)


async def test_a_guest_that_is_killed_while_it_is_frozen_is_gone_when_it_is_thawed(walled: Harness) -> None:
    """It answers nobody, and nothing of it is left."""
    container = await walled.bind(await walled.deploy(COUNT))
    there = walled.agent._parts.containers.get(container)
    assert there is not None
    assert there._start.blank is not None
    await parked(walled, container)
    for pid in there._start.blank.sandbox.pids():
        os.kill(pid, signal.SIGKILL)

    assert (await walled.command(Unpark(epoch=walled.epoch, container=container, slice="cpu-0"))).reason in ("", "gone")

    await walled.report(lambda report: not report.containers and report.memory.parked == 0)
    assert (await walled.run(container).refused()).reason is Refusal.GONE


async def test_a_hook_that_fails_ends_its_container(server_url: str, tmp_path: Path) -> None:
    """Its GPU may be half left: it serves nobody."""
    async with (
        devices(FakeNvml([FakeGpu(uuid=UUID)])) as gpus,
        everybody(server_url, tmp_path) as world,
        agent(world, sandbox="bubblewrap", blanks=0, gpus=gpus, warm_memory=GIB),
    ):
        container = await world.bind(await world.deploy(FAILING, **ON_GPU, **HOOKS), UUID)

        assert (await world.command(Park(epoch=world.epoch, container=container))).ok

        await world.report(lambda report: not report.containers)
        assert any("out of memory" in line.text for line in await world.logs(lambda lines: len(lines) > 0))


async def test_a_hook_that_hangs_delays_no_end(server_url: str, tmp_path: Path) -> None:
    """Its app is stopped, or its node taken away, while it is being parked: it has two seconds for all that it does."""
    async with (
        devices(FakeNvml([FakeGpu(uuid=UUID)])) as gpus,
        everybody(server_url, tmp_path) as world,
        agent(world, sandbox="bubblewrap", blanks=0, gpus=gpus, warm_memory=GIB),
    ):
        container = await world.bind(await world.deploy(HANGING, **ON_GPU, **HOOKS), UUID)
        assert (await world.command(Park(epoch=world.epoch, container=container))).ok
        await world.logs(lambda lines: any("goes" in line.text for line in lines))
        drain = Drain(epoch=world.epoch, container=container, within_ms=1_000.0)

        assert (await world.command(drain)).ok

        async with asyncio.timeout(PARK_S / 2):
            await world.report(lambda report: not report.containers)


async def test_what_is_called_back_and_drained_takes_no_call(server_url: str, tmp_path: Path) -> None:
    """It was about to serve again: it goes in order, and nobody is told that it is ready."""
    async with (
        devices(FakeNvml([FakeGpu(uuid=UUID)])) as gpus,
        everybody(server_url, tmp_path) as world,
        agent(world, sandbox="bubblewrap", blanks=0, gpus=gpus, warm_memory=GIB),
    ):
        container = await world.bind(await world.deploy(SLOW, **ON_GPU, **HOOKS), UUID)
        there = world.agent._parts.containers.get(container)
        assert there is not None
        assert there.park(1.0) == ""
        assert there.unpark(UUID, Purpose.CALL) == ""
        await world.logs(lambda lines: any("comes" in line.text for line in lines))
        there.drain(60.0, "its app is stopped")

        await there.wait_gone()

        assert there.reason == "its app is stopped"
        assert not any(is_back(credit) for credit in world.credits[container])
