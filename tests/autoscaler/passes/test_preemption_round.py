"""Who is blocked is helped by idle containers, in one pass over all of them."""

from __future__ import annotations

import msgspec

from pilotlight_autoscaler.command_sender import subject_of_command
from pilotlight_autoscaler.observations.world import World
from pilotlight_core.model.messages.node_messages import Drain, HostShare
from tests.autoscaler.builders import decide, demand, record, report
from tests.builders.nodes import GIB, container


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


def test_a_tenant_takes_no_more_of_others_floors_than_its_share() -> None:
    """However many functions of it wait at once: half of the four slots, in one pass."""
    world = World()
    idle = [container(f"c{n}", "ver_2", idle_s=9.0, slice=f"cpu-{n}") for n in range(4)]
    world.on_report(report(*idle, slots=4), 1.0)
    poor = [msgspec.structs.replace(record(f"ver_{n}"), tenant="zoo", function=f"f{n}") for n in "abc"]
    for version in poor:
        world.on_demand(msgspec.structs.replace(demand(version.id, queued=1), tenant="zoo"), 1.0)

    decision = decide(world, *poor, record("ver_2", min_containers=4))

    assert [type(sent.command) for sent in decision.commands] == [Drain, Drain]


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


def test_the_place_of_what_is_replaced_is_not_about_to_be_free() -> None:
    """However often that is asked for: for its replacement an idle container goes, and for whoever else waits too."""
    for waiting in ((), (msgspec.structs.replace(record("ver_z"), tenant="zoo", function="z"),)):
        world = World(replacing={"c0": 0.9})
        idle = [container(f"c{n}", "ver_2", idle_s=20.0 + n, slice=f"cpu-{n}") for n in (1, 2)]
        world.on_report(report(container("c0", "ver_1", running=1, slice="cpu-0"), *idle, slots=3), 1.0)
        for version in waiting:
            world.on_demand(msgspec.structs.replace(demand(version.id, queued=1), tenant="zoo"), 1.0)

        decision = decide(world, record(min_containers=1), record("ver_2"), *waiting)

        leave = {subject_of_command(sent.command) for sent in decision.commands}
        assert leave == ({"c2", "c1"} if waiting else {"c2"})


def test_a_floor_keeps_nobody_else_from_running_at_all() -> None:
    """One tenant's min_containers fill the fleet: a waiting tenant without a container gets a slice of it."""
    world = World()
    hog = msgspec.structs.replace(record("ver_2", min_containers=2), tenant="hog")
    idle = [container(f"c{n}", "ver_2", tenant="hog", idle_s=2.0 + n, slice=f"cpu-{n}") for n in range(2)]
    world.on_report(report(*idle, slots=2), 1.0)
    world.on_demand(demand(queued=1), 1.0)

    decision = decide(world, record(), hog)
    assert [(type(s.command), subject_of_command(s.command)) for s in decision.commands] == [(Drain, "c1")]

    own = [msgspec.structs.replace(each, tenant="acme") for each in idle]
    world.on_report(report(*own, slots=2, seq=2), 1.0)
    assert decide(world, record(), msgspec.structs.replace(hog, tenant="acme")).commands == []


def test_a_floor_is_filled_from_what_has_long_been_idle() -> None:
    """Nobody waits for it, so it does not push out what was used a moment ago."""
    for idle_s, leaves in ((5.0, []), (11.0, ["c1"])):
        world = World()
        world.on_report(report(container("c1", "ver_2", idle_s=idle_s), slots=1), 1.0)

        decision = decide(world, record(min_containers=1), record("ver_2"))

        assert [subject_of_command(sent.command) for sent in decision.commands] == leaves


def test_what_is_idle_gives_way_for_memory_too() -> None:
    """There are slots enough; the longest idle container whose memory suffices is drained."""
    world = World()
    share = HostShare(cpu_millis=100, memory=20 * GIB)
    there = container("c1", "ver_1", idle_s=50.0, host=share)
    world.on_report(report(there, slots=4, host=HostShare(cpu_millis=8000, memory=24 * GIB)), 1.0)
    world.on_demand(demand("ver_2", queued=1), 1.0)

    made = decide(world, record("ver_1", memory=20 * GIB), record("ver_2", memory=20 * GIB))

    assert [type(sent.command) for sent in made.commands] == [Drain]
    assert "gives way" in " ".join(made.notes)
