"""An agent whose GPUs exist in software: cut over the bus, used, and cut alike after a start of the host."""

from __future__ import annotations

from pathlib import Path

from pilotlight_core.model import subjects
from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.device_commands import Cut, DeviceCommand
from pilotlight_core.model.messages.node_messages import CommandReply, NodeReport, Stop
from tests.runtime.gpus import devices, machine
from tests.runtime.harness import REGION, WITHIN, Harness, agent, everybody

HALVES = (MigPlacement(start=0, profile="3g"), MigPlacement(start=4, profile="3g"))


async def cut(world: Harness, command: DeviceCommand) -> str:
    """Why it was refused, or ""."""
    reply = await world.bus.request(subjects.command(REGION, world.node), command, WITHIN)
    assert isinstance(reply, CommandReply)
    return reply.reason


def is_cut(report: NodeReport) -> bool:
    """Whether the GPU has both halves, and nothing is under way."""
    (gpu,) = report.devices
    return not gpu.changing and tuple(one.place for one in gpu.instances) == HALVES


async def test_a_gpu_is_cut_used_and_cut_alike_after_a_reboot(server_url: str, tmp_path: Path) -> None:
    """A container runs on an instance, which cannot go meanwhile; another boot has the same layout before any bind."""
    async with everybody(server_url, tmp_path) as world:
        async with devices(machine("H100:mig", tmp_path)) as gpus, agent(world, gpus=gpus):
            version = await world.deploy("def f(n):\n    return n + 1\n")
            (gpu,) = (await world.report(lambda report: report.devices)).devices
            third = f"{gpu.id}:3g@4"
            assert (await world.command(world.bind_of(version, third))).reason == "no_such_slice"
            assert await cut(world, Cut(epoch=world.epoch, device=gpu.id, create=HALVES)) == ""
            await world.report(is_cut)
            container = await world.bind(version, third)
            assert await world.run(container, n=1).output() == 2
            assert await cut(world, Cut(epoch=world.epoch, device=gpu.id, destroy=HALVES)) == "slice_taken"
            assert await cut(world, Cut(epoch=world.epoch - 1, device=gpu.id, destroy=HALVES)) == "stale_epoch"
            assert (await world.command(Stop(epoch=world.epoch, container=container))).ok
            await world.report(lambda report: not report.containers)
        world.reports.clear()
        async with devices(machine("H100:mig", tmp_path, boot="b2")) as gpus, agent(world, gpus=gpus):
            first = await world.report(lambda report: report.devices)
            assert is_cut(first)
            container = await world.bind(version, third)
            assert await world.run(container, n=2).output() == 3
