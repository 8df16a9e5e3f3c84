"""From what was observed to commands."""

from __future__ import annotations

from itertools import count

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_core.model.messages.node_messages import Bind, HostShare
from tests.autoscaler.builders import decide, demand, record, report
from tests.builders.nodes import GIB, container


def test_an_edge_starts_the_first_container_at_once() -> None:
    """0 -> 1 needs no tick: the pass runs for the one version."""
    world = World()
    world.on_report(report(), 1.0)
    world.on_demand(demand(queued=1), 1.0)

    (sent,) = decide(world, record(), only="ver_1").commands

    assert sent.node == "n1"
    assert sent.command == Bind(
        epoch=7,
        container="new1",
        version="ver_1",
        tenant="acme",
        manifest_sha256="00",
        slice="cpu-0",
        function="acme:hello.greet",
        host=HostShare(cpu_millis=100, memory=2 * GIB),
    )


def test_stale_demand_starts_nothing() -> None:
    """A home that is gone does not keep a fleet busy."""
    world = World()
    world.on_demand(demand(queued=1), 1.0)
    world.on_report(report(), 9.0)

    assert decide(world, record(), at=9.0).commands == []


def test_memory_that_is_promised_is_promised_once() -> None:
    """Ten floors of 20 GiB on a node of 24: one container starts, and the others are told what they wait for."""
    world = World()
    world.on_report(report(slots=10, host=HostShare(cpu_millis=8000, memory=24 * GIB)), 1.0)
    records = [record(f"ver_{n}", memory=20 * GIB, min_containers=1) for n in range(10)]

    made = decide(world, *records)

    (sent,) = made.commands
    assert isinstance(sent.command, Bind)
    assert sent.command.host == HostShare(cpu_millis=100, memory=20 * GIB)
    assert len(made.shortages) == 9
    assert {shortage.never for shortage in made.shortages} == {False}
    assert "are on hosts whose memory is promised to other containers" in made.shortages[0].reason


def test_a_look_finds_what_is_to_change_and_changes_nothing() -> None:
    """Calls without a container, and containers without calls; what they need is remembered."""
    world = World()
    idle = container("c1", "ver_2", idle_s=1e6)
    world.on_report(report(idle, container("c2", "ver_3", running=1, slice="cpu-1")), 1.0)
    world.on_demand(demand("ver_1", queued=1), 1.0)
    world.on_demand(demand("ver_3", running=1), 1.0)
    known = {name: record(name) for name in ("ver_1", "ver_2", "ver_3")}
    ids = count(1)
    given = PassInput(versions=known, deployed=known, epoch=7, new_id=lambda _: f"new{next(ids)}", at=1.0)

    made = Pass(world, given)

    assert made.inspect([*known, "ver_gone"]) == ["ver_1", "ver_2"]
    assert made.sizes == {"ver_1": (0, 1), "ver_2": (1, 0), "ver_3": (1, 1)}
    assert (world.pending, world.draining, next(ids)) == ({}, {}, 1)
