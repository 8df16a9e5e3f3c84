"""Containers that nobody wants end."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.needless_containers import TAKEN
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_core.model.messages.node_messages import ContainerState, Drain, Keep
from pilotlight_core.model.messages.usage_facts import Purpose
from tests.autoscaler.builders import decide, demand, record, report
from tests.autoscaler.busy_fleet import BusyFleet, cpu_nodes, lasting
from tests.builders.nodes import container


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


def test_what_is_let_out_too_far_ends() -> None:
    """By what it was given, whatever its version asks for: a pass each second finds what a report says later."""
    world = World()
    there = [container(f"c{n}", running=1, network=mark, slice=f"cpu-{n}") for n, mark in enumerate((0, 1, 2, 3, 4))]
    world.on_report(report(*there), 1.0)
    version = record(network=("a.example.com:443", "b.example.com:443"), min_containers=5)

    def ended(at: float, *allowed: str) -> list[str]:
        decision = decide(world, version, at=at, network_of=lambda _: allowed, stop_grace_s=30.0)
        found = [sent.command for sent in decision.commands if isinstance(sent.command, Drain)]
        assert {(each.within_ms, each.reason) for each in found} <= {(30_000.0, TAKEN)}
        return [each.container for each in found]

    assert ended(1.0, "*:443") == ["c4"]  # what no version names was given by nobody
    assert ended(10.0, "b.example.com:443") == ["c1", "c3", "c4"]
    assert ended(10.5, "b.example.com:443") == []
    assert ended(20.0) == ["c1", "c2", "c3", "c4"]


def test_what_has_long_been_idle_ends_once() -> None:
    """Not again while a plan under way ends it already, and not what its version keeps."""
    world = World()
    there = [container(f"c{n}", idle_s=1e6 + n, slice=f"cpu-{n}") for n in range(2)]
    world.on_report(report(*there), 1.0)

    kept_one = decide(world, record(min_containers=1))
    assert [sent.command.container for sent in kept_one.commands if isinstance(sent.command, Drain)] == ["c1"]
    assert "idle for" in kept_one.notes[0]

    world.draining["c1"] = 1.0
    assert decide(world, record(min_containers=1), at=1.2).commands == []


def test_what_is_beyond_a_lowered_ceiling_goes_at_once_as_it_becomes_idle() -> None:
    """However short it was idle, and even a moment after a start: somebody wants fewer. Calls end where they run."""
    world = World()
    there = [container(f"c{n}", idle_s=2.0, running=int(n > 5), slice=f"cpu-{n}") for n in range(10)]
    world.on_report(report(*there, slots=10), 1.0)
    world.on_demand(demand(running=4), 1.0)
    assert decide(world, record(max_containers=10)).commands == []
    world.scaling.on_up("acme:hello.greet", 0.0)

    decided = decide(world, record(max_containers=2), at=1.2)

    assert sorted(sent.command.container for sent in decided.commands if isinstance(sent.command, Drain)) == [
        f"c{n}" for n in range(6)
    ]
    assert "max_containers=2 allows no more" in decided.notes[0]


def test_beyond_a_lowered_ceiling_nothing_goes_whose_home_is_silent() -> None:
    """Nobody knows what calls it has."""
    world = World()
    world.on_report(report(*(container(f"c{n}", idle_s=2.0, slice=f"cpu-{n}") for n in range(3))), 4.0)
    world.on_demand(demand(running=3), 1.0)

    assert decide(world, record(max_containers=1), at=4.0).commands == []


def test_ten_idle_ones_do_not_go_together() -> None:
    """One in a minute, however many passes there are; those of a superseded version go at once."""
    world = World()
    there = [container(f"c{n}", idle_s=1e6, slice=f"cpu-{n}") for n in range(10)]
    gone: dict[float, int] = {}
    for seq in range(1, 1_000):
        at = seq * 0.25
        left = [each for each in there if each.id not in world.draining]
        world.on_report(report(*left, seq=seq, slots=10), at)
        for sent in decide(world, record(scaledown_window=300.0), at=at).commands:
            assert isinstance(sent.command, Drain)
            world.draining[sent.command.container] = at
            gone[at] = gone.get(at, 0) + 1
    assert list(gone.values()) == [1] * len(gone)
    assert [round(at) for at in gone] == [0, 60, 120, 180, 240]

    world = World()
    world.on_report(report(*there, slots=10), 1.0)
    superseded = Pass(
        world,
        PassInput(versions={"ver_1": record()}, deployed=(), epoch=7, new_id=lambda _: "new", at=1.0),
    ).run()
    assert len(superseded.commands) == 10


def test_containers_of_a_silent_home_stay() -> None:
    """Until it has been silent for so long that nobody knows of its calls."""
    world = World()
    there = container("c1", idle_s=1e6, slice="cpu-0")
    world.on_demand(demand(running=1), 1.0)
    for seq, at in enumerate((2.0, 30.0, 59.0), start=1):
        world.on_report(report(there, seq=seq), at)
        world.forget(at)
        assert decide(world, record(), at=at).commands == []
    world.on_report(report(there, seq=9), 62.0)
    world.forget(62.0)
    assert len(decide(world, record(), at=62.0).commands) == 1


def test_a_home_that_is_done_keeps_nothing() -> None:
    """Its last word says that nothing runs or waits."""
    world = World()
    world.on_demand(demand(), 1.0)
    world.on_report(report(container("c1", idle_s=1e6, slice="cpu-0")), 5.0)
    assert len(decide(world, record(), at=5.0).commands) == 1


@pytest.mark.parametrize(("on_s", "off_s", "window_s"), [(5.0, 5.0, 30.0), (20.0, 50.0, 30.0), (5.0, 65.0, 60.0)])
def test_a_load_that_flaps_costs_few_starts(on_s: float, off_s: float, window_s: float) -> None:
    """Whatever its period: in ten minutes one container goes per window at most, and only what has gone comes again."""
    fleet = BusyFleet(slices=cpu_nodes(1, 12))
    load = lasting("crowd", "f", call_s=(0.2, 1.0), scaledown_window=window_s)
    fleet.add(load)
    began, most = fleet.at, 0
    while fleet.at < began + 600.0:
        for load.calls, for_s in ((10, on_s), (0, off_s)):
            for _ in fleet.run(for_s):
                most = max(most, len(fleet.there))

    assert most == 12
    assert fleet.drains.total() <= (fleet.at - began) / window_s
    assert fleet.starts.total() <= most + fleet.drains.total()


def test_agents_are_told_what_is_there_by_a_guess() -> None:
    """What the pace of a step down keeps beyond its window, and who asks for it again: the ledger bills by it."""
    world = World()
    there = [container(f"c{n}", idle_s=900.0 + n, age_s=5e3, guessed=False, slice=f"cpu-{n}") for n in range(4)]
    world.on_report(report(*there), 1.0)

    first = [sent.command for sent in decide(world, record(min_containers=1)).commands]

    assert [each.container for each in first if isinstance(each, Drain)] == ["c3"]
    keeps = [Keep(epoch=7, container=name, purpose=Purpose.PREWARM) for name in ("c2", "c1")]
    assert [each for each in first if isinstance(each, Keep)] == keeps

    world.draining["c3"] = 1.0
    world.on_report(report(*(msgspec.structs.replace(each, guessed=each.id != "c0") for each in there), seq=2), 1.2)
    assert decide(world, record(min_containers=1), at=1.2).commands == []
    raised = [sent.command for sent in decide(world, record(min_containers=2), at=1.4).commands]
    assert raised == [Keep(epoch=7, container="c1", purpose=Purpose.FLOOR)]
