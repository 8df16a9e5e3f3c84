"""Who had no place is asked again when something is freed that would serve, or after a while."""

from __future__ import annotations

from dataclasses import replace

from pilotlight_autoscaler.observations.refusal_memory import (
    AGAIN_S,
    LEAST_IN_TIME,
    LONGEST_AGAIN_S,
    REVISED_AT_ONCE,
    ROOM_AGAIN_S,
    RefusalMemory,
)
from pilotlight_core.model.messages.node_messages import Shortage
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.reports import node_of
from pilotlight_placement.search.decision_record import NoFit, Placement
from pilotlight_placement.search.place import place
from tests.builders.nodes import cpu_slot, gpu_device, node_report

CPU = Ask(function="acme:hello.greet", tenant="acme")


def full_fleet() -> Fleet:
    """A node with a slot that is taken, and another node with a free GPU."""
    fleet = Fleet([node_of(node_report("a", slices=(cpu_slot(),))), node_of(node_report("b", devices=(gpu_device(),)))])
    found = place(fleet, CPU)
    assert isinstance(found, Placement)
    fleet.hold(found.held("c1"))
    return fleet


def refused(memory: RefusalMemory, fleet: Fleet, *versions: str, at: float = 0.0, room: bool = True) -> None:
    found = place(fleet, CPU)
    assert isinstance(found, NoFit)
    memory.refresh(fleet, (), (), lambda _: groups(fleet))
    memory.note(versions, at, room=room)


def groups(fleet: Fleet) -> frozenset[DeviceGroup]:
    return fleet.offers(CPU).of_use


def test_who_was_refused_is_due_when_what_would_serve_is_released() -> None:
    """Not when something is taken, and not before."""
    memory, fleet = RefusalMemory(), full_fleet()
    refused(memory, fleet, "ver_1")
    assert memory.due(1.0, room=True) == []

    fleet.release("c1")
    memory.refresh(fleet, (), (), lambda _: groups(fleet))

    assert memory.due(1.0, room=False) == ["ver_1"]


def test_who_was_refused_is_due_when_what_would_serve_has_become_idle() -> None:
    """It may give way."""
    memory, fleet = RefusalMemory(), full_fleet()
    refused(memory, fleet, "ver_1")

    memory.refresh(fleet, ["c1"], (), lambda _: groups(fleet))

    assert memory.due(1.0, room=False) == ["ver_1"]


def test_all_are_asked_again_after_a_while_and_few_at_a_time() -> None:
    """However many they are; who waits for room by moves, when moves are considered."""
    memory, fleet = RefusalMemory(), full_fleet()
    refused(memory, fleet, *(f"ver_{number:03}" for number in range(100)))
    assert memory.due(AGAIN_S - 0.1, room=False) == []
    assert memory.due(AGAIN_S, room=False) == [f"ver_{number:03}" for number in range(LEAST_IN_TIME)]

    one = RefusalMemory()
    refused(one, fleet, "ver_1", room=False)
    assert (one.due(0.1, room=False), one.due(0.1, room=True)) == ([], ["ver_1"])
    refused(one, fleet, "ver_1", at=0.2)
    assert one.due(0.3, room=True) == []
    refused(one, fleet, "ver_1", at=ROOM_AGAIN_S - 1.0, room=False)
    assert (one.due(ROOM_AGAIN_S, room=True), one.due(ROOM_AGAIN_S + 0.2, room=True)) == ([], ["ver_1"])


def test_who_was_refused_often_while_nothing_was_freed_is_asked_ever_less_often() -> None:
    """As often as at first once something was."""
    memory, fleet, at = RefusalMemory(), full_fleet(), 0.0
    refused(memory, fleet, "ver_1")
    for again_s in (AGAIN_S, 2 * AGAIN_S, 4 * AGAIN_S, 8 * AGAIN_S, LONGEST_AGAIN_S, LONGEST_AGAIN_S):
        assert memory.due(at + again_s - 0.1, room=False) == []
        at += again_s
        assert memory.due(at, room=False) == ["ver_1"]
        refused(memory, fleet, "ver_1", at=at)

    memory.open_all()
    refused(memory, fleet, "ver_1", at=at)
    assert memory.due(at + AGAIN_S, room=False) == ["ver_1"]


def test_a_limit_is_looked_at_again_when_its_tenants_containers_change() -> None:
    """Those of others are not its matter."""
    memory, fleet = RefusalMemory(), full_fleet()
    memory.note_limit("ver_1", "acme", 0.0)
    memory.refresh(fleet, (), {"zoo"}, lambda _: groups(fleet))
    memory.refresh(fleet, (), {"zoo"}, lambda _: groups(fleet))
    assert memory.due(1.0, room=True) == []

    memory.refresh(fleet, (), {"acme"}, lambda _: groups(fleet))

    assert memory.due(1.0, room=True) == ["ver_1"]


def test_callers_hear_again_what_they_were_told_until_the_version_has_a_place() -> None:
    """What was never refused has nothing to be told."""
    memory, fleet = RefusalMemory(), full_fleet()
    refused(memory, fleet, "ver_1", "ver_2")
    told = Shortage(version="ver_1", epoch=1, reason="all is in use")
    memory.set_shortage(told)
    memory.set_shortage(Shortage(version="ver_3", epoch=1, reason="it was never refused"))

    assert [memory.shortage(version) for version in ("ver_1", "ver_2", "ver_3")] == [told, None, None]
    memory.settle(["ver_1"], 1.0)
    assert (memory.versions(), memory.shortage("ver_1")) == ({"ver_2"}, None)


def test_a_tenant_with_a_thousand_refusals_delays_nobody_else() -> None:
    """One of each tenant in turn; those of tenants for whom a place was made come first."""
    memory = RefusalMemory()
    memory.note([f"a{number}" for number in range(1_000)], 0.0, room=True)
    memory.note(["b1", "c1"], 0.5, room=True)
    assert {"b1", "c1"} <= set(memory.due(AGAIN_S + 1.0, room=False, tenant_of=lambda version: version[0]))

    due = memory.due(1.0, room=False, tenant_of=lambda version: version[0], first={"c"})
    assert due == ["c1"]
    memory.open_all()
    assert memory.due(1.0, room=False, tenant_of=lambda version: version[0], first={"c"})[0] == "c1"


def test_what_nobody_decides_on_takes_no_turn() -> None:
    """Nor what was asked for anew."""
    memory = RefusalMemory()
    memory.note([f"gone{number}" for number in range(50)] + ["here"], 0.0, room=True)
    memory.keep({"here"})
    assert memory.due(AGAIN_S + 1.0, room=False) == ["here"]
    memory.forget("here")
    assert len(memory) == 0


def test_what_is_found_of_one_holds_for_those_that_need_as_much() -> None:
    """The one that needs least is looked at for all of its kind, but not for those that ask for something else."""
    memory, fleet = RefusalMemory(), full_fleet()
    asks = {f"ver_{gib}": replace(CPU, function=f"acme:hello.f{gib}", memory=gib * 2**30) for gib in (3, 1, 2)}
    asks["ver_gpu"] = replace(CPU, gpu=(GpuAsk("H100"),))
    memory.refresh(fleet, (), (), lambda _: groups(fleet))
    for version, ask in asks.items():
        memory.note([version], 0.0, room=True, ask=ask)
    assert memory.due(AGAIN_S, room=False) == ["ver_1", "ver_gpu"]

    memory.note(["ver_2"], AGAIN_S, room=False, ask=asks["ver_2"])
    memory.note_alike("ver_2", AGAIN_S, room=False)
    assert memory.due(AGAIN_S + 2.0, room=False) == ["ver_1", "ver_gpu"]
    assert memory.due(3 * AGAIN_S - 0.1, room=False) == ["ver_1", "ver_gpu"]
    memory.keep({"ver_2", "ver_3"})
    assert memory.due(3 * AGAIN_S + 4.0, room=False) == ["ver_2"]


def test_where_one_has_started_others_of_its_kind_are_due() -> None:
    """There may be more places; one that is over without a start says nothing."""
    memory = RefusalMemory()
    memory.note(["ver_1", "ver_2", "ver_3"], 0.0, room=True, ask=CPU)

    memory.settle(["ver_1"], 1.0)
    assert memory.due(1.0, room=False) == []

    memory.settle(["ver_2"], 1.0, ["ver_2"])
    assert memory.due(1.0, room=False) == ["ver_3"]


def test_as_many_of_a_kind_are_looked_at_together_as_are_likely_to_have_places() -> None:
    """Where something is freed one tries; each pass in which one of them starts doubles it, until one is refused."""
    memory = RefusalMemory()
    versions = [f"ver_{number:02}" for number in range(40)]
    for number, version in enumerate(versions):
        memory.note([version], 0.0, room=True, ask=replace(CPU, memory=(number + 1) * 2**30))
    memory.note(["ver_else"], 0.0, room=True)
    memory.open_all()

    at, together = 1.0, list[int]()
    while len(together) < 6:
        due = memory.due(at, room=False)
        assert "ver_else" in due
        of_kind = [version for version in due if version != "ver_else"]
        assert of_kind == [version for version in versions if version in memory][: len(of_kind)]
        together.append(len(of_kind))
        memory.settle(of_kind, at, of_kind)
        at += 0.25
    assert together == [1, 2, 4, 8, REVISED_AT_ONCE - 1, REVISED_AT_ONCE - 1]

    refused_one = next(version for version in versions if version in memory)
    memory.note([refused_one], at, room=True, ask=CPU)
    memory.open_all()
    assert len(memory.due(at, room=False)) == 2


def test_what_was_refused_a_moment_ago_is_fresh_until_something_is_freed() -> None:
    """Whoever devices are kept for is looked at no more often either."""
    memory = RefusalMemory()
    memory.note(["ver_1"], 10.0, room=False)

    assert memory.is_fresh("ver_1", 10.9)
    assert not memory.is_fresh("ver_1", 11.0)
    assert not memory.is_fresh("ver_2", 10.0)
    memory.open_all()
    assert not memory.is_fresh("ver_1", 10.1)


def test_looks_that_find_nothing_become_rarer_until_something_is_new() -> None:
    """A version without a place that was not known, or a place for one that was."""
    memory = RefusalMemory()
    names = [f"ver_{number:03}" for number in range(60)]
    memory.note(names, 0.0, room=True)

    def looks(first: float, seconds: float) -> list[float]:
        found = []
        for tick in range(int(seconds * 4)):
            at = first + tick / 4
            if due := memory.due(at, room=False):
                memory.note(due, at, room=False)
                found.append(at - first)
        return found

    assert looks(100.0, 16.0) == [0.0, 2.0, 6.0, 10.0, 14.0]
    memory.note(["ver_new"], 116.0, room=True)
    assert looks(116.0, 4.0) == [0.0, 2.0]
    memory.settle(["ver_new"], 200.0)
    assert looks(200.0, 4.0) == [0.0, 2.0]


def test_those_of_a_kind_that_are_still_to_be_looked_at_stay_so_when_one_of_them_has_no_place() -> None:
    """Unless they need as much as that one."""
    memory, fleet = RefusalMemory(), full_fleet()
    asks = {f"ver_{gib}": replace(CPU, memory=gib * 2**30) for gib in (1, 2, 3)}
    for version, ask in asks.items():
        memory.note([version], 0.0, room=True, ask=ask)
    memory.refresh(fleet, (), (), lambda _: groups(fleet))
    fleet.release("c1")
    memory.refresh(fleet, (), (), lambda _: groups(fleet))
    assert memory.due(1.0, room=False) == ["ver_1"]

    memory.note(["ver_1"], 1.0, room=True, ask=asks["ver_1"])
    assert memory.due(1.2, room=False) == ["ver_2"]
    memory.note(["ver_2"], 1.2, room=True, ask=asks["ver_2"])
    memory.note_alike("ver_2", 1.2, room=True)
    assert memory.due(1.4, room=False) == []
    memory.forget("ver_1")
    memory.open_all()
    assert memory.due(1.6, room=False) == ["ver_2"]
