"""From what was observed to commands."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec

from pilotlight_autoscaler.controller import subject_of_command
from pilotlight_autoscaler.explain_answers import answer
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decide import Pass, PassInput
from pilotlight_core.model.limits import NO_LIMITS, Limits
from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.explaining import ExplainPlacement
from pilotlight_core.model.messages.node_messages import Bind, ContainerState, Drain, HostShare
from pilotlight_core.model.spec import SLO
from pilotlight_placement.asks.curves import Curves, ThroughputPoint
from tests.autoscaler.builders import decide, demand, record, report
from tests.builders.calls import credit
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


def test_what_is_shut_down_ends_whatever_it_does() -> None:
    """Starting, serving or leaving already: its grace is the bound, and calls that wait hear that nothing will come."""
    world = World(draining={"c2": 0.5})
    states = (ContainerState.LOADING, ContainerState.READY, ContainerState.DRAINING)
    there = [container(f"c{n}", running=1, state=state, slice=f"cpu-{n}") for n, state in enumerate(states)]
    world.on_report(report(*there), 1.0)
    world.on_demand(demand(queued=3), 1.0)

    decision = decide(world, record(min_containers=3), shut_down={"ver_1": "its app is stopped"}, stop_grace_s=30.0)

    assert [sent.command for sent in decision.commands] == [
        Drain(epoch=7, container=f"c{n}", within_ms=30_000.0, reason="its app is stopped") for n in range(3)
    ]
    (shortage,) = decision.shortages
    assert (shortage.shut_down, shortage.never, shortage.reason) == (True, True, "its app is stopped")
    assert decide(world, record(), at=1.3, shut_down={"ver_1": "its app is stopped"}).commands == []


def test_containers_without_a_record_are_ended_too() -> None:
    """Their version was deleted."""
    world = World()
    world.on_report(report(container("c1", "ver_gone", running=1)), 1.0)

    (sent,) = decide(world, shut_down={"ver_gone": "its version is deleted"}).commands

    assert isinstance(sent.command, Drain)


def limits(**of: int) -> dict[str, Any]:
    """The input of a pass in which `acme` has these limits, and others have none."""
    return {"limits_of": lambda tenant: Limits(**of) if tenant == "acme" else NO_LIMITS}


def test_a_tenant_gets_as_many_containers_as_its_limit_allows() -> None:
    """The rest is refused with the limit's name, and another tenant's call starts."""
    world = World()
    busy = [container(f"c{n}", "ver_2", running=1, slice=f"cpu-{n}") for n in range(2)]
    world.on_report(report(*busy, slots=8), 1.0)
    world.on_demand(demand(queued=5, service_ms=1e6), 1.0)
    other = msgspec.structs.replace(record("ver_z"), tenant="zoo", app="zoo")
    world.on_demand(msgspec.structs.replace(demand("ver_z", queued=1), tenant="zoo"), 1.0)

    decision = decide(world, record(), record("ver_2"), other, **limits(containers=4))

    started = [sent.command.version for sent in decision.commands if isinstance(sent.command, Bind)]
    assert sorted(started) == ["ver_1", "ver_1", "ver_z"]
    (shortage,) = decision.shortages
    assert (shortage.version, shortage.never) == ("ver_1", False)
    assert "(limit containers)" in shortage.reason
    told = answer(world, ExplainPlacement(function="acme:hello.greet"), 1.0, 0.0)
    assert "acme has 2 containers, and its limit containers=4 allows no more" in " ".join(told.lines)
    assert not any("would do" in line for line in told.lines if "limit" in line)


def test_at_its_limit_a_tenants_idle_containers_give_way_to_its_calls() -> None:
    """Not to its floors, and nobody else's do."""
    world = World()
    idle = [container(f"c{n}", "ver_2", idle_s=5.0 + n, slice=f"cpu-{n}") for n in range(2)]
    strange = container("c9", "ver_z", tenant="zoo", idle_s=50.0, slice="cpu-3")
    world.on_report(report(*idle, strange), 1.0)
    other = msgspec.structs.replace(record("ver_z"), tenant="zoo", app="zoo")
    known = (record(min_containers=1), record("ver_2"), other)
    assert decide(world, *known, **limits(containers=2)).commands == []

    world.on_demand(demand(queued=1), 1.0)
    decision = decide(world, *known, **limits(containers=2))

    assert [(type(s.command), subject_of_command(s.command)) for s in decision.commands] == [(Drain, "c1")]


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


def test_a_host_is_kept_for_an_ask_that_has_waited_long() -> None:
    """Else small ones would take each part of its memory as soon as it is free, for ever."""
    world = World()
    host, small = HostShare(cpu_millis=8000, memory=24 * GIB), HostShare(cpu_millis=100, memory=6 * GIB)
    busy = [container(f"c{n}", "ver_1", slice=f"cpu-{n}", running=1, host=small) for n in range(4)]
    large = record("ver_2", memory=20 * GIB)
    known = (record("ver_1", memory=6 * GIB, max_containers=10), large)
    world.on_report(report(*busy, slots=8, host=host), 1.0)
    world.on_demand(demand("ver_2", queued=1, oldest_ms=20_000.0), 1.0)
    decide(world, *known)
    assert world.reservation is not None
    assert world.reservation.kept.nodes == {"n1"}

    world.on_report(report(*busy[:2], seq=2, slots=8, host=host), 2.0)
    world.on_demand(demand("ver_1", queued=9, oldest_ms=1.0), 2.0)
    world.on_demand(demand("ver_2", queued=1, oldest_ms=21_000.0), 2.0)
    assert decide(world, *known, at=2.0).commands == []

    world.on_report(report(seq=3, slots=8, host=host), 3.0)
    world.on_demand(demand("ver_1", queued=9, oldest_ms=1.0), 3.0)
    world.on_demand(demand("ver_2", queued=1, oldest_ms=22_000.0), 3.0)
    started = [sent.command for sent in decide(world, *known, at=3.0).commands]
    assert [command.version for command in started if isinstance(command, Bind)] == ["ver_2"]
