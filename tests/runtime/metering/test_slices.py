"""Who is on which part of a node's GPUs, and that every nanosecond of each is metered meanwhile."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pilotlight_core.model.devices import MigPlacement, SliceName
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.devices.cpu_slots import CpuDevices
from pilotlight_runtime.devices.fake.fake_machine import FakeMachine
from pilotlight_runtime.devices.nvidia.nvml_devices import NvmlDevices
from pilotlight_runtime.devices.several_devices import SeveralDevices
from pilotlight_runtime.metering.ended_shares import EndedShares
from pilotlight_runtime.metering.slices import SliceAllocation, Slices, conflict
from pilotlight_runtime.metering.usage_log import UsageLog
from pilotlight_runtime.metering.usage_metering import Metering
from tests.runtime.gpus import devices, machine

pytestmark = pytest.mark.usefixtures("anyio_backend")
THIRD, SMALL = MigPlacement(start=4, profile="3g"), MigPlacement(start=0, profile="1g")


class NoStore:
    """Usage stays on disk."""

    async def store(self, subject: str, message: Message, *, id: str, timeout: float) -> int:  # noqa: A002
        raise AssertionError("nothing is stored")


class World:
    """The slices of a machine, with a boot clock that is set."""

    def __init__(self, gpus: NvmlDevices, made: FakeMachine, log: UsageLog, ended: EndedShares) -> None:
        self.at_ns = 1_000
        self.gpus, self.made, self.log = gpus, made, log
        kinds = SeveralDevices(CpuDevices(2), gpus)
        self.metering = Metering(
            node="n",
            instance="i",
            region="local",
            slices=kinds.inventory(),
            usage_log=log,
            ended_shares=ended,
            store=NoStore(),
            clock=lambda: self.at_ns,
        )
        self.slices = Slices(kinds, self.metering)

    @property
    def uuids(self) -> list[str]:
        return [gpu.uuid for gpu in self.made.nvml.gpus]

    def take(self, slice_id: str, container: str, tenant: str = "acme", *, neighbours: bool = False) -> str:
        """Let a container have a slice 10 ns later; why not, or ""."""
        self.at_ns += 10
        refusal = self.slices.refusal(slice_id, tenant, neighbours=neighbours)
        if not refusal:
            self.slices.take(slice_id, container, tenant, neighbours=neighbours)
        self.slices.check_integrity()
        return refusal

    def release(self, slice_id: str) -> None:
        self.at_ns += 10
        self.slices.release(slice_id)

    async def command(self, command: Cut | SwitchMig) -> str:
        """Let it be done; why not, or ""."""
        self.at_ns += 10
        answer = self.slices.command(command)
        done = asyncio.Event()
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            watching = group.create_task(self.gpus.watch(done.set))
            while any(report.changing for report in self.slices.devices()):
                done.clear()
                await done.wait()
            watching.cancel()
        self.slices.sync()
        return answer

    async def cut(self, *create: MigPlacement, device: int = 0, destroy: tuple[MigPlacement, ...] = ()) -> str:
        return await self.command(Cut(epoch=1, device=self.uuids[device], destroy=destroy, create=create))

    def offered(self) -> dict[str, str]:
        """Slice -> container, but for CPU slots."""
        return {part.id: part.container for part in self.slices.reports() if part.kind is not SliceKind.CPU}

    async def check_meters(self) -> None:
        """All that was metered of each device is the device, at each instant."""
        self.at_ns += 10
        await self.metering.write()
        events = defaultdict(list)
        for pending in self.log.pending(10_000):
            for event in pending.record.events:
                events[event.device].append(event)
        assert set(events) == {"cpu", *self.uuids}
        for found in events.values():
            edges = sorted({edge for event in found for edge in (event.t0, event.t1)})
            assert (edges[0], edges[-1]) == (1_000, self.at_ns)
            for t0, t1 in itertools.pairwise(edges):
                assert sum(event.ppm for event in found if event.t0 <= t0 and t1 <= event.t1) == WHOLE_DEVICE


@asynccontextmanager
async def world(spec: str, folder: Path) -> AsyncIterator[World]:
    made, log = machine(spec, folder), UsageLog(folder / "usage", "boot")
    ended = EndedShares(folder / "ended", "boot")
    try:
        async with devices(made) as gpus:
            there = World(gpus, made, log, ended)
            yield there
            there.slices.check_integrity()
            await there.check_meters()
    finally:
        log.close()
        ended.close()


async def test_a_whole_gpu_has_one_container(tmp_path: Path) -> None:
    """Nobody else gets it, or a share of it, until it is released."""
    async with world("T4:share", tmp_path) as node:
        [gpu] = node.uuids
        assert node.take(gpu, "c1") == ""
        assert node.offered() == {gpu: "c1"}
        assert node.take(gpu, "c2") == "slice_taken"
        assert node.take(f"{gpu}:125/1000~c2", "c2") == "slice_taken"
        node.release(gpu)
        assert node.take(f"{gpu}:125/1000~c2", "c2") == ""


async def test_shares_are_one_tenants_and_fit_together(tmp_path: Path) -> None:
    """A GPU that has some is not given whole, and not listed."""
    async with world("T4:share", tmp_path) as node:
        [gpu] = node.uuids
        first, second = f"{gpu}:250/1000~c1", f"{gpu}:750/1000~c2"
        assert node.take(first, "c1") == ""
        assert node.take(f"{gpu}:125/1000~c3", "c3", "globex") == "other_tenant"
        assert node.take(f"{gpu}:751/1000~c3", "c3") == "slice_taken"
        assert node.take(gpu, "c3") == "slice_taken"
        await node.check_meters()
        assert node.take(second, "c2") == ""
        assert node.offered() == {first: "c1", second: "c2"}
        memory = {part.id: part.memory for part in node.slices.reports()}
        assert memory[second] == 3 * memory[first]
        node.release(first)
        node.release(second)
        assert node.offered() == {gpu: ""}
        assert node.take(f"{gpu}:125/1000~c3", "c3", "globex") == ""


async def test_tenants_share_a_gpu_only_if_all_agree(tmp_path: Path) -> None:
    """Who came first must have agreed too."""
    async with world("T4:share", tmp_path) as node:
        [gpu] = node.uuids
        assert node.take(f"{gpu}:125/1000~c1", "c1", "acme", neighbours=True) == ""
        assert node.take(f"{gpu}:125/1000~c2", "c2", "globex") == "other_tenant"
        assert node.take(f"{gpu}:125/1000~c3", "c3", "globex", neighbours=True) == ""
        assert node.take(f"{gpu}:125/1000~c4", "c4", "acme") == "other_tenant"


async def test_what_was_not_said_to_be_shareable_has_no_shares(tmp_path: Path) -> None:
    """Nor has a GPU in MIG mode."""
    async with world("T4,H100:mig", tmp_path) as node:
        for gpu in node.uuids:
            assert node.take(f"{gpu}:125/1000~c1", "c1") == "no_such_slice"
        assert node.take("no slice:", "c1") == "no_such_slice"


async def test_several_whole_gpus_are_one_containers(tmp_path: Path) -> None:
    """Each of them is metered, and none is free for anybody else."""
    async with world("2xH100", tmp_path) as node:
        first, second = node.uuids
        assert node.take(f"{first}+{second}", "c1") == ""
        assert node.offered() == {first: "c1", second: "c1"}
        assert node.take(second, "c2") == "slice_taken"
        node.metering.slice(f"{first}+{second}")
        node.release(f"{first}+{second}")
        assert node.offered() == {first: "", second: ""}


async def test_containers_are_on_instances_of_one_gpu(tmp_path: Path) -> None:
    """An instance with a container is not cut away; another is, and the meters follow."""
    async with world("H100:mig", tmp_path) as node:
        [gpu] = node.uuids
        third, small = f"{gpu}:{THIRD}", f"{gpu}:{SMALL}"
        assert node.take(third, "c1") == "no_such_slice"
        assert await node.cut(THIRD, SMALL) == ""
        assert node.take(third, "c1") == ""
        assert node.offered() == {third: "c1", small: ""}
        assert await node.cut(destroy=(THIRD,)) == "slice_taken"
        assert await node.command(SwitchMig(epoch=1, device=gpu, on=False)) == "slice_taken"
        await node.check_meters()
        assert await node.cut(MigPlacement(start=0, profile="4g"), destroy=(SMALL,)) == ""
        assert node.take(small, "c2") == "no_such_slice"
        assert node.offered() == {third: "c1", f"{gpu}:4g@0": ""}


async def test_a_gpu_that_fails_is_not_given(tmp_path: Path) -> None:
    """Who is on it stays, and is reported."""
    async with world("2xT4:share", tmp_path) as node:
        first, second = node.uuids
        assert node.take(first, "c1") == ""
        for gpu in node.made.nvml.gpus:
            gpu.lost = True
        await node.gpus.refresh()
        assert node.offered() == {first: "c1"}
        assert node.take(second, "c2") == "slice_withdrawn"
        assert node.take(f"{second}:125/1000~c2", "c2") == "slice_withdrawn"


@pytest.mark.parametrize("several", [False, True])
async def test_a_gpu_that_is_cut_by_hand_under_a_container_is_still_metered_as_its(
    tmp_path: Path, several: bool
) -> None:
    """As long as the container lives; nothing on it is metered twice."""
    async with world("2xH100", tmp_path) as node:
        held = "+".join(node.uuids) if several else node.uuids[0]
        assert node.take(held, "c1") == ""
        gpu = node.made.nvml.gpus[0]
        gpu.mig = True
        assert gpu.device.family is not None
        gpu.add(gpu.device.family.by_key["1g"], 0).compute = True
        await node.gpus.refresh()
        node.slices.sync()
        await node.check_meters()
        assert node.metering.slice(held) is not None
        assert node.take(f"{gpu.uuid}:{SMALL}", "c2") == "slice_taken"
        node.release(held)
        assert node.take(f"{gpu.uuid}:{SMALL}", "c2") == ""


async def test_commands_for_what_is_not_there_are_refused(tmp_path: Path) -> None:
    """And do nothing."""
    async with world("T4,H100", tmp_path) as node:
        plain, hopper = node.uuids
        for device, why in (
            ("GPU-0", "no_such_device"),
            (plain, "not_mig"),
            (hopper, "not_mig"),
            ("cpu", "no_such_device"),
        ):
            assert node.slices.command(Cut(epoch=1, device=device, create=(SMALL,))) == why
        assert node.slices.command(SwitchMig(epoch=1, device=plain, on=True)) == "not_mig"
        assert await node.command(SwitchMig(epoch=1, device=hopper, on=True)) == ""
        assert node.offered() == {plain: ""}
        assert node.slices.devices()[1].mig == "on"


def hold(name: str, tenant: str = "acme", *, neighbours: bool = False) -> SliceAllocation:
    part = CpuDevices(1).inventory()[0]
    return SliceAllocation(name=SliceName.parse(name), part=part, container="c", tenant=tenant, neighbours=neighbours)


@pytest.mark.parametrize(
    ("asked", "held", "why"),
    [
        ("g", "h", ""),
        ("g", "g", "slice_taken"),
        ("g+h", "h", "slice_taken"),
        ("g", "g+h", "slice_taken"),
        ("g", "g:1g@0", "slice_taken"),
        ("g:1g@0", "g", "slice_taken"),
        ("g:1g@0", "g:1g@1", ""),
        ("g:1g@0", "g:1g@0", "slice_taken"),
        ("g:1g@0", "g:125/1000~a", "slice_taken"),
        ("g:125/1000~a", "g:1g@0", "slice_taken"),
        ("g:125/1000~a", "g:875/1000~b", ""),
        ("g:125/1000~a", "g:876/1000~b", "slice_taken"),
        ("g:125/1000~a", "g:125/1000~a", "slice_taken"),
        ("cpu-0", "cpu-1", ""),
    ],
)
def test_what_can_be_beside_what(asked: str, held: str, why: str) -> None:
    """Instances beside instances, shares beside shares, and nothing else on one device."""
    assert conflict(SliceName.parse(asked), "acme", [hold(held)]) == why


async def test_a_blank_is_metered_until_its_slice_is_taken_or_cut_away(tmp_path: Path) -> None:
    """As the operator's; whatever becomes of the GPU meanwhile, all of it is metered once."""
    async with world("1xH100:mig,1xT4:share", tmp_path) as there:
        await there.cut(SMALL, THIRD)
        slices, (h100, t4) = there.slices, there.uuids
        small, third = f"{h100}:1g@0", f"{h100}:3g@4"
        told: list[str] = []
        slices.changed = lambda: told.append("changed")
        assert {part.id for part in slices.free_gpus()} == {small, third, t4}
        for slice_id in (small, third, t4):
            slices.mark_blank(slice_id, is_there=True)
        await there.check_meters()

        assert not there.take(small, "c1")
        assert told
        assert slices.keeps_blank(small)  # its container has not asked for it yet
        slices.mark_blank(small, is_there=False)  # what a container has is its own
        assert not there.take(f"{t4}:250/1000~c2", "c2")
        assert slices.keeps_blank(t4)
        assert [part.id for part in slices.free_gpus()] == [third]
        assert not await there.cut(destroy=(THIRD,))
        assert not slices.keeps_blank(third)
        slices.mark_blank(third, is_there=False)
        await there.check_meters()

        there.release(f"{t4}:250/1000~c2")
        slices.mark_blank(t4, is_there=True)
        await there.check_meters()


async def test_a_container_that_comes_back_finds_no_use_for_a_blank(tmp_path: Path) -> None:
    """It has its process; the blank would lie beside it until it goes."""
    async with world("1xT4", tmp_path) as there:
        (t4,) = there.uuids
        there.slices.mark_blank(t4, is_there=True)

        there.slices.take(t4, "c1", "acme", wants_blank=False)

        assert not there.slices.keeps_blank(t4)
        await there.check_meters()


async def test_a_gpu_that_is_taken_with_another_keeps_no_blank(tmp_path: Path) -> None:
    """Its sandbox would not see the other one."""
    async with world("2xT4", tmp_path) as there:
        first, second = there.uuids
        there.slices.mark_blank(first, is_there=True)

        assert not there.take(f"{first}+{second}", "c1")

        assert not there.slices.keeps_blank(first)
        assert not there.slices.free_gpus()
        there.slices.mark_blank(first, is_there=False)
        await there.check_meters()
