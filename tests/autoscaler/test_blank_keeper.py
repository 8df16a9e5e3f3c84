"""Nodes are told how many blanks they keep, on a real bus."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_autoscaler import blank_keeper
from pilotlight_autoscaler.blank_keeper import NODES_AT_ONCE, BlankKeeper
from pilotlight_autoscaler.observations.world import World
from pilotlight_core.bus import Bus
from pilotlight_core.host.registry import Registry
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.node_messages import BlankSize, CommandReply, KeepBlanks, Prefetch
from pilotlight_core.model.records.nodes import NodeLabels, NodeRecord
from pilotlight_core.model.spec import AppRecord
from tests.builders.nodes import cpu_slot, node_report
from tests.builders.specs import function_spec, version_record
from tests.waiting import until


async def test_a_node_is_told_until_its_report_says_so(bus: Bus) -> None:
    """By who leads; a deploy changes it, and has the version fetched ahead.

    An agent of before is told nothing, and one that has joined by a token hears of no version before it is bound there.
    """
    region, base, told, fetched = f"r{token(6)}", f"base-{token(6)}", list[KeepBlanks](), list[tuple[str, Prefetch]]()
    slots = tuple(cpu_slot(number) for number in range(4))
    report = node_report("n1", slices=slots, bases=("default", base), blank_sizes=())

    def on_command(subject: str, message: Any, reply: str) -> None:
        if isinstance(message, Prefetch):
            fetched.append((subject, message))
        elif subject == subjects.command(region, "n1"):
            told.append(message)
        bus.publish_nowait(reply, CommandReply(ok=True))

    def of(name: str) -> list[int]:
        return [size.count for command in told[-1:] for size in command.sizes if size.base == name]

    joined = NodeRecord(node=f"joined-{token(6)}", labels=NodeLabels(region=region, zone="z"))
    for node in ("n1", "old", joined.node):
        await bus.subscribe(subjects.command(region, node), on_command)
    await bus.flush()
    async with Registry(bus) as registry:
        world, lease = World(), bus.lease(f"blanks-{token(6)}", "me")
        world.nodes["n1"] = report
        await registry.change_node(joined.node, lambda _: joined)
        world.nodes[joined.node] = node_report(joined.node, slices=slots, bases=("default", base), blank_sizes=())
        world.nodes["old"] = node_report("old", slices=slots, blank_sizes=None)
        async with BlankKeeper(bus, registry, lease, world, region=region).running():
            await lease.acquire()
            await until(lambda: of(base) == [1])
            assert told[-1].epoch == lease.epoch
            assert BlankSize(base=base, count=1) in told[-1].sizes
            world.nodes["n1"] = msgspec.structs.replace(report, blank_sizes=told[-1].sizes, revision=2)

            for name in ("one", "two"):
                version = version_record(
                    function_spec(name), id=f"ver_{token()}", tenant=f"t{token(6)}", base=base, app=name
                )
                await registry.put_version(version)
                app = AppRecord(tenant=version.tenant, app=name, revision=1, functions={name: version.id})
                await registry.deploy(app, 0)
            await until(lambda: of(base) == [3])
            await until(lambda: len(fetched) == 2)
            assert {subject for subject, _ in fetched} == {subjects.command(region, "n1")}
        await lease.release()
    assert {command.sizes[0].base for command in told} <= {"default", base}


async def test_nodes_that_do_not_obey_keep_no_other_from_being_told(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are more of them than are told at once, and they are due again each time."""
    monkeypatch.setattr(blank_keeper, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(blank_keeper, "AGAIN_S", 0.0)
    region, told = f"r{token(6)}", list[Any]()
    await bus.subscribe(subjects.command(region, "last"), lambda _, message, __: told.append(message))
    await bus.flush()
    async with Registry(bus) as registry:
        world, lease = World(), bus.lease(f"blanks-{token(6)}", "me")
        for name in (*(f"n{number}" for number in range(NODES_AT_ONCE)), "last"):
            world.nodes[name] = node_report(name, slices=(cpu_slot(0),), blank_sizes=())
        async with BlankKeeper(bus, registry, lease, world, region=region).running():
            await lease.acquire()
            await until(lambda: told)
        await lease.release()
