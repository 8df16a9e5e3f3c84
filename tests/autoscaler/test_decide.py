"""From what was observed to commands."""

from __future__ import annotations

from itertools import count

import msgspec

from pilotlight_autoscaler.controller import subject_of_command
from pilotlight_autoscaler.decide import Decision, Pass, PassInput
from pilotlight_autoscaler.explain_answers import answer
from pilotlight_autoscaler.world import World
from pilotlight_core.model.messages.agent_messages import Bind, ContainerState, Drain, RemoteError
from pilotlight_core.model.messages.explaining import ExplainPlacement
from pilotlight_core.model.spec import SLO, VersionRecord
from pilotlight_placement.asks.curves import Curves, ThroughputPoint
from tests.autoscaler.builders import demand, record, report
from tests.builders.calls import credit
from tests.builders.nodes import container


def decide(world: World, *versions: VersionRecord, at: float = 1.0, only: str | None = None) -> Decision:
    ids = count(1)
    known = {version.id: version for version in versions}
    return Pass(
        world, PassInput(versions=known, deployed=known, epoch=7, new_id=lambda _: f"new{next(ids)}", at=at)
    ).run(only)


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
    )


def test_without_a_node_calls_are_told_what_is_missing() -> None:
    """There is no bind; the shortage has the reason, and that nothing could ever fit."""
    world = World()
    world.on_demand(demand(queued=1), 1.0)

    decision = decide(world, record())

    assert decision.commands == []
    assert decision.shortages[0].never
    assert "the fleet has nothing" in decision.shortages[0].reason


def test_each_who_is_blocked_is_helped_whoever_else_is_going() -> None:
    """One is going already, which is enough for one of two that wait; for the other one the next goes."""
    world = World(draining={"c1": 0.9})
    idle = [container(f"c{n}", "ver_2", idle_s=2.0 + n, slice=f"cpu-{n}") for n in range(3)]
    world.on_report(report(*idle, slots=3), 1.0)
    waiting = [msgspec.structs.replace(record(f"ver_{name}"), function=name) for name in ("a", "b")]
    for version in waiting:
        world.on_demand(demand(version.id, queued=1), 1.0)

    decision = decide(world, *waiting, record("ver_2"))

    assert [(type(s.command), subject_of_command(s.command)) for s in decision.commands] == [(Drain, "c2")]
    assert {shortage.version for shortage in decision.shortages} == {"ver_a", "ver_b"}


def test_a_tenant_takes_no_more_of_others_floors_than_brings_it_its_first_container() -> None:
    """However many functions of it wait at once."""
    world = World()
    idle = [container(f"c{n}", "ver_2", idle_s=9.0, slice=f"cpu-{n}") for n in range(4)]
    world.on_report(report(*idle, slots=4), 1.0)
    poor = [msgspec.structs.replace(record(f"ver_{n}"), tenant="zoo", function=f"f{n}") for n in "abc"]
    for version in poor:
        world.on_demand(msgspec.structs.replace(demand(version.id, queued=1), tenant="zoo"), 1.0)

    decision = decide(world, *poor, record("ver_2", min_containers=4))

    assert [type(sent.command) for sent in decision.commands] == [Drain]


def test_an_idle_container_gives_way_when_the_fleet_is_full() -> None:
    """The longest idle container of a version without waiting calls is drained, one at a time."""
    world = World()
    idle = [container(f"c{n}", "ver_2", idle_s=2.0 + n, slice=f"cpu-{n}") for n in range(2)]
    world.on_report(report(*idle, slots=2), 1.0)
    world.on_demand(demand(queued=1), 1.0)

    decision = decide(world, record(), record("ver_2"))

    assert [(type(s.command), subject_of_command(s.command)) for s in decision.commands] == [(Drain, "c1")]
    assert not decision.shortages[0].never


def test_the_next_gives_way_as_soon_as_the_one_before_has_gone() -> None:
    """Not while it is still there; and not only when it would have been given up."""
    world = World(draining={"c1": 0.9})
    left, going = (container(f"c{n}", "ver_2", idle_s=2.0, slice=f"cpu-{n}") for n in range(2))
    world.on_report(report(left, going, slots=2), 1.0)
    world.on_demand(demand(queued=1), 1.0)
    assert not decide(world, record(), record("ver_2")).commands

    other = container("c2", "ver_3", running=1, slice="cpu-1")
    world.on_report(report(left, other, slots=2, seq=2), 1.0)
    decision = decide(world, record(), record("ver_2"), record("ver_3"))

    assert [(type(s.command), subject_of_command(s.command)) for s in decision.commands] == [(Drain, "c0")]


def test_a_start_that_failed_is_not_repeated_at_once() -> None:
    """Failures to load back off; a later success forgets them."""
    world = World()
    world.on_report(report(), 1.0)
    world.on_demand(demand(queued=1), 1.0)
    failed = credit("c9", state=ContainerState.GONE, error=RemoteError("ImportError", "no module"))

    world.on_credit(failed, 1.0)
    world.on_credit(failed, 1.0)  # said again for a while, and counted once

    assert decide(world, record(), at=1.1).commands == []
    world.on_demand(demand(queued=1), 2.0)
    assert len(decide(world, record(), at=2.0).commands) == 1


def test_stale_demand_starts_nothing() -> None:
    """A home that is gone does not keep a fleet busy."""
    world = World()
    world.on_demand(demand(queued=1), 1.0)
    world.on_report(report(), 9.0)

    assert decide(world, record(), at=9.0).commands == []


def test_a_floor_keeps_nobody_else_from_running_at_all() -> None:
    """One tenant's min_containers fill the fleet: a waiting tenant without a container gets a slice of it."""
    world = World()
    hog = msgspec.structs.replace(record("ver_2", min_containers=2), tenant="hog")
    idle = [container(f"c{n}", "ver_2", idle_s=2.0 + n, slice=f"cpu-{n}") for n in range(2)]
    world.on_report(report(*idle, slots=2), 1.0)
    world.on_demand(demand(queued=1), 1.0)

    decision = decide(world, record(), hog)
    assert [(type(s.command), subject_of_command(s.command)) for s in decision.commands] == [(Drain, "c1")]

    same = msgspec.structs.replace(hog, tenant="acme")
    assert decide(world, record(), same).commands == []


def test_a_floor_is_filled_from_what_has_long_been_idle() -> None:
    """Nobody waits for it, so it does not push out what was used a moment ago."""
    for idle_s, leaves in ((5.0, []), (11.0, ["c1"])):
        world = World()
        world.on_report(report(container("c1", "ver_2", idle_s=idle_s), slots=1), 1.0)

        decision = decide(world, record(min_containers=1), record("ver_2"))

        assert [subject_of_command(sent.command) for sent in decision.commands] == leaves


def test_a_service_level_gets_containers_by_the_curve_of_their_slices() -> None:
    """71 calls a second at 40 a second and container are three; of the batch sizes those within the level count."""
    world = World()
    world.on_report(report(container("c1", running=1), slots=4), 1.0)
    for tick in range(1, 40):
        world.on_demand(msgspec.structs.replace(demand(running=1), arrivals=18), 1.0 + tick * 0.25)
    at = 1.0 + 39 * 0.25
    world.on_report(report(container("c1", running=1), slots=4, seq=2), at)
    points = (
        ThroughputPoint(batch=1, throughput=40.0, p95_ms=25.0),
        ThroughputPoint(batch=8, throughput=200.0, p95_ms=90.0),
    )
    known = {"ver_1": record(slo=SLO(p95_ms=50.0))}
    curves = {"ver_1": Curves({("CPU", "slot"): points})}
    ids = count(1)

    decision = Pass(
        world,
        PassInput(versions=known, deployed=known, epoch=7, new_id=lambda _: f"new{next(ids)}", at=at, curves=curves),
    ).run()

    assert [type(sent.command) for sent in decision.commands] == [Bind, Bind]
    told = "hello.greet@v1: 3 containers carry 71.4 calls per second within 50 ms, used to 80%"
    assert decision.notes[0].startswith(told)
    explained = answer(world, ExplainPlacement(function="acme:hello.greet"), at, at)
    assert explained.lines[:2] == ("Now:", f"  {told}; those that are there do 40 per second.")
