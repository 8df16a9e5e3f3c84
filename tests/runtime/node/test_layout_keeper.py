"""How GPUs are cut is kept on the bus, and made again after a start of the host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.model.devices import GpuLayout, LayoutRecord, MigPlacement
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.device_commands import Cut
from pilotlight_core.model.subjects import LAYOUT_BUCKET
from pilotlight_runtime.devices.nvidia.nvml_devices import NvmlDevices
from pilotlight_runtime.node.layout_keeper import LayoutKeeper
from tests.runtime.gpus import devices, machine
from tests.waiting import until_found

pytestmark = pytest.mark.usefixtures("anyio_backend")
HALVES = (MigPlacement(start=0, profile="3g"), MigPlacement(start=4, profile="3g"))

TORN = b"torn"


@asynccontextmanager
async def node(
    bus: Bus, name: str, folder: Path, *, boot: str = "b1", spec: str = "H100:mig,H100"
) -> AsyncIterator[tuple[NvmlDevices, LayoutKeeper]]:
    """A node that keeps its layouts, from the start of its agent on."""
    async with devices(machine(spec, folder, boot=boot)) as gpus, asyncio.TaskGroup() as group:
        keeper = LayoutKeeper(bus, name, gpus)
        await keeper.restore()
        tasks = [group.create_task(keeper.run()), group.create_task(gpus.watch(keeper.changed))]
        yield gpus, keeper
        for task in tasks:
            task.cancel()


async def kept(bus: Bus, name: str, device: str, places: Collection[MigPlacement]) -> None:
    """Until the record says so."""

    async def is_kept() -> bool:
        entry = await bus.kv(LAYOUT_BUCKET).get(name)
        if entry is None or entry.value == TORN:
            return False
        record = msgspec.msgpack.decode(entry.value, type=LayoutRecord)
        return record.devices.get(device) == GpuLayout(mig=True, places=tuple(places))

    await until_found(is_kept)


def first(gpus: NvmlDevices) -> str:
    return gpus.reports({})[0].id


async def test_a_host_that_was_started_anew_is_cut_as_it_was(server_url: str, tmp_path: Path) -> None:
    """Only what the driver lost: an agent that dies finds its instances, and they are the same ones."""
    name = f"n-{token(6)}"
    async with connect(server_url, name="test") as bus:
        async with node(bus, name, tmp_path) as (gpus, _):
            cut = first(gpus)
            assert gpus.command(Cut(epoch=1, device=cut, create=HALVES), ()) == ""
            await kept(bus, name, cut, HALVES)
            before = [one.uuid for one in gpus.reports({})[0].instances]
        async with node(bus, name, tmp_path) as (gpus, _):
            assert [one.uuid for one in gpus.reports({})[0].instances] == before
        async with node(bus, name, tmp_path, boot="b2") as (gpus, _):
            again = gpus.reports({})[0].instances
            assert [one.place for one in again] == list(HALVES)
            assert {one.uuid for one in again}.isdisjoint(before)
            assert gpus.reports({})[1].instances == ()


async def test_a_gpu_that_is_away_for_a_while_is_not_forgotten(server_url: str, tmp_path: Path) -> None:
    """Its layout is kept beside the others', for when it is there again."""
    name = f"n-{token(6)}"
    async with connect(server_url, name="test") as bus:
        async with node(bus, name, tmp_path) as (gpus, _):
            cut = first(gpus)
            gpus.command(Cut(epoch=1, device=cut, create=HALVES), ())
            await kept(bus, name, cut, HALVES)
        (tmp_path / "gpus.json").unlink()
        async with node(bus, name, tmp_path, spec="T4,H100:mig") as (gpus, _):
            other = gpus.reports({})[1].id
            gpus.command(Cut(epoch=1, device=other, create=HALVES[:1]), ())
            await kept(bus, name, other, HALVES[:1])
            await kept(bus, name, cut, HALVES)


async def test_an_unreadable_record_restores_nothing(server_url: str, tmp_path: Path) -> None:
    """It is written anew with what there is."""
    name = f"n-{token(6)}"
    async with connect(server_url, name="test") as bus:
        await bus.kv(LAYOUT_BUCKET).put(name, TORN)
        async with node(bus, name, tmp_path) as (gpus, _):
            assert gpus.reports({})[0].instances == ()
            await kept(bus, name, first(gpus), ())


async def test_a_node_without_gpus_that_are_cut_keeps_nothing(server_url: str, tmp_path: Path) -> None:
    """No record of nothing."""
    name = f"n-{token(6)}"
    async with connect(server_url, name="test") as bus:
        async with node(bus, name, tmp_path, spec="T4") as (gpus, keeper):
            assert gpus.layouts() == {}
            keeper.changed()
        assert await bus.kv(LAYOUT_BUCKET).get(name) is None
