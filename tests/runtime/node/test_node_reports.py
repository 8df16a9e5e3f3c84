"""What a node says of itself."""

from __future__ import annotations

import asyncio
import time

from pilotlight_core.model.devices import cpu_price
from pilotlight_core.model.messages.node_messages import ContainerState, Stop
from pilotlight_core.model.versions.manifest_codec import FEATURES, REQUIREMENTS, SANDBOX_LIMITS, SECRET_FILES
from pilotlight_runtime.devices.cpu_slots import usable_cores
from tests.runtime.harness import Harness


async def test_a_node_reports_its_slices_and_containers(world: Harness) -> None:
    """Slices with who is on them, containers as they are, and rising numbers."""
    version = await world.deploy("def f():\n    return 1\n")
    container = await world.bind(version, "cpu-1")

    report = await world.report(lambda report: report.containers and report.containers[0].state is ContainerState.READY)

    assert report.node == world.node
    assert report.sandbox == "process"
    lacking = {SANDBOX_LIMITS, SECRET_FILES, REQUIREMENTS}  # what it cannot hold, has no place for, or no index
    assert not lacking & {*report.features}
    assert lacking | {*report.features} == FEATURES
    assert report.environments == ()
    assert [(part.id, part.ppm, part.price, part.container) for part in report.slices] == [
        ("cpu-0", 500_000, cpu_price(usable_cores()), ""),
        ("cpu-1", 500_000, cpu_price(usable_cores()), container),
    ]
    [one] = report.containers
    assert (one.id, one.version, one.tenant, one.app, one.function, one.slice, one.slots) == (
        container,
        version.id,
        "acme",
        "demo",
        "f",
        "cpu-1",
        1,
    )
    assert report.controller_epoch == world.epoch
    assert abs(report.clock - time.time()) < 180.0  # unix seconds, of this host's clock
    numbers = [report.seq for report in world.reports]
    assert numbers == sorted(set(numbers))


async def test_it_repeats_itself_each_second(world: Harness) -> None:
    """Without any change, reports and credits go on, so that silence means something."""
    container = await world.bind(await world.deploy("def f():\n    return 1\n"))
    reports, told = len(world.reports), len(world.credits[container])

    async with asyncio.timeout(30):
        while len(world.reports) < reports + 2 or len(world.credits[container]) < told + 2:
            await world.news()

    assert world.credits[container][-1].state is ContainerState.READY
    assert world.credits[container][-1].slots == 1


async def test_a_slice_that_fails_takes_nobody(world: Harness) -> None:
    """It is not offered while it is withdrawn, and a command that comes too late is refused."""
    version = await world.deploy("def f():\n    return 1\n")
    world.devices.failed["cpu-1"] = "it fell off the bus"
    world.devices.changed.set()
    await world.report(lambda report: [part.id for part in report.slices] == ["cpu-0"])

    assert (await world.command(world.bind_of(version, "cpu-1"))).reason == "slice_withdrawn"

    world.devices.failed.clear()
    world.devices.changed.set()
    await world.report(lambda report: len(report.slices) == 2)
    assert (await world.command(world.bind_of(version, "cpu-1"))).ok


async def test_it_says_what_has_ended_and_whether_it_had_been_ready(world: Harness) -> None:
    """For some seconds, since a report may be lost."""
    good = await world.bind(await world.deploy("def f():\n    return 1\n"), "cpu-0")
    await world.report(lambda report: any(one.state is ContainerState.READY for one in report.containers))
    bad = await world.bind(await world.deploy("raise ValueError('no')\n"), "cpu-1", ContainerState.GONE)
    await world.command(Stop(epoch=world.epoch, container=good))

    report = await world.report(lambda report: len(report.ended or ()) == 2)

    assert {one.id: one.was_ready for one in report.ended or ()} == {good: True, bad: False}
    assert report.containers == ()
