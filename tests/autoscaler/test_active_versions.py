"""Which versions a pass decides on."""

from __future__ import annotations

import msgspec

from pilotlight_autoscaler.active_versions import DECIDED_AT_ONCE, TURNS, ActiveVersions
from pilotlight_autoscaler.observations.world import World
from tests.autoscaler.builders import demand, record, report
from tests.builders.nodes import container


def active(count: int) -> ActiveVersions:
    """So many versions that are known."""
    found = ActiveVersions()
    records = {f"ver_{number}": record(f"ver_{number}") for number in range(count)}
    found.take(records, records, records, {}, {})
    return found


def chosen(known: ActiveVersions, world: World, at: float) -> set[str]:
    """What a pass over all decides on."""
    return known.choose(world, known.settled.unsettled(known.take_turn(world), world, at), at=at, room=False)


def test_each_has_its_turn_within_a_second_and_what_changes_at_once() -> None:
    """What waits has each turn, and what has changed the next one."""
    known, world = active(40), World()
    turns = [chosen(known, world, 0.0) for _ in range(TURNS)]
    assert set().union(*turns) == known.records.keys()
    assert sum(map(len, turns)) == len(known.records)

    world.on_demand(demand("ver_3", queued=1), 0.0)
    world.on_report(report(container("c1", "ver_4")), 0.0)
    turns = [chosen(known, world, 0.0) for _ in range(TURNS)]
    assert all("ver_3" in turn for turn in turns)
    assert "ver_4" in turns[0]
    assert sum("ver_4" in turn for turn in turns) <= 2


def test_what_waits_without_a_place_is_left_out_until_its_calls_are_over() -> None:
    """Then it has to be forgotten."""
    known, world = active(4), World()
    world.on_demand(demand("ver_1", queued=1), 0.0)
    world.changed.clear()
    world.refusals.note_limit("ver_1", "acme", 0.0)
    assert all("ver_1" not in chosen(known, world, 1.0) for _ in range(TURNS))

    world.on_demand(demand("ver_1"), 1.0)

    assert "ver_1" in chosen(known, world, 1.0)


def test_a_pass_decides_on_so_many_and_puts_off_the_rest() -> None:
    """Those that it has to decide on are beside them; of several tenants none waits behind all of another's."""
    known = ActiveVersions()
    many = [f"ver_{number}" for number in range(3 * DECIDED_AT_ONCE)]
    records = {name: record(name) for name in many} | {"ver_b": msgspec.structs.replace(record("ver_b"), tenant="beta")}
    known.take(records, records, records, {}, {})

    first = known.take_first([many[-1]], [*many[:-1], "ver_b"])

    assert len(first) == DECIDED_AT_ONCE + 1
    assert {many[-1], "ver_b"} < first
    turns = [first]
    while known.put_off:
        turns.append(known.take_first([], list(known.put_off)))
    assert set().union(*turns) == records.keys()
    assert sum(map(len, turns)) == len(records)


def test_versions_that_are_deleted_or_not_active_any_more_are_forgotten() -> None:
    """With the function's last version the function is gone."""
    known = active(2)
    assert {name: set(of_it) for name, of_it in known.versions_of.items()} == {"acme:hello.greet": {"ver_0", "ver_1"}}

    known.take(["ver_0"], {}, (), {"ver_0": "its version is deleted"}, {})
    assert (set(known.records), known.deployed, set(known.shut_down)) == ({"ver_1"}, {"ver_1"}, {"ver_0"})
    assert known.unread({"ver_0", "ver_1"}) == {"ver_0"}

    known.keep(set())
    assert (known.records, known.versions_of, known.shut_down) == ({}, {}, {})
