"""What tenants give back, in the controller's own passes over simulated nodes: who, how many, and in which order."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.limits import Limits
from pilotlight_core.model.messages.node_messages import Drain
from pilotlight_core.model.spec import Priority
from tests.autoscaler.busy_fleet import BusyFleet, cpu_nodes, lasting
from tests.example_counts import SLOW, examples

CALLS_S = (2.0, 6.0)
LONGEST_S = CALLS_S[1] + 1.0
"""A call, and a load."""


def crowded(slots: int = 8, **limits: Limits) -> BusyFleet:
    """One node, all of whose slots have calls of `crowd`."""
    fleet = BusyFleet(slices=cpu_nodes(1, slots), terms=limits)
    fleet.add(lasting("crowd", "f", calls=3 * slots, call_s=CALLS_S))
    passed(fleet, 12.0)
    assert fleet.held() == {"crowd": slots}
    return fleet


def passed(fleet: BusyFleet, seconds: float) -> list[str]:
    """The reasons of all drains in that time."""
    commands = [sent.command for made in fleet.run(seconds) for sent in made.commands]
    return [command.reason for command in commands if isinstance(command, Drain)]


def test_a_guarantee_is_there_within_a_call_and_a_load() -> None:
    """As many containers end as are guaranteed, none of them for nothing, and none goes back and forth afterwards."""
    fleet = crowded(late=Limits(guarantee=0.5))
    fleet.weights = {"late": 0.01}
    fleet.add(lasting("late", "f", calls=20, call_s=CALLS_S))

    passed(fleet, LONGEST_S)

    assert fleet.ready("late") == 4
    assert fleet.drains == {"crowd": 4}
    passed(fleet, 40.0)
    assert fleet.drains == {"crowd": 4}


def test_weights_alone_take_from_what_has_worked_for_a_while() -> None:
    """Half of the slots, after the calls have waited a little; not from a container that has just begun."""
    fleet = BusyFleet(slices=cpu_nodes(1, 4))
    fleet.add(lasting("crowd", "f", calls=9, call_s=(60.0, 60.0)))
    passed(fleet, 2.0)
    fleet.add(lasting("late", "f", calls=9, call_s=CALLS_S))

    assert passed(fleet, 7.0) == []
    assert len(passed(fleet, 10.0)) == 2
    assert passed(fleet, 60.0) == []
    assert fleet.held() == {"crowd": 2, "late": 2}


def test_calls_of_the_class_batch_end_first() -> None:
    """Of the same tenant, with as many containers."""
    fleet = BusyFleet(slices=cpu_nodes(1, 8), terms={"late": Limits(guarantee=0.25)}, weights={"late": 0.01})
    fleet.add(lasting("crowd", "online", calls=4, call_s=CALLS_S, max_containers=4))
    fleet.add(lasting("crowd", "nightly", calls=9, call_s=CALLS_S, max_containers=4, priority=Priority.BATCH))
    passed(fleet, 12.0)
    fleet.add(lasting("late", "f", calls=5, call_s=CALLS_S))

    passed(fleet, LONGEST_S)

    assert (len(fleet.of("ver_crowd_online")), len(fleet.of("ver_crowd_nightly"))) == (4, 2)


def test_a_floor_inside_the_guarantee_stays_and_one_beyond_it_is_borrowed() -> None:
    """Two of six idle containers are guaranteed; the rest is shared by weights as all is."""
    fleet = BusyFleet(slices=cpu_nodes(1, 8), terms={"keeper": Limits(guarantee=0.25)}, weights={"keeper": 0.01})
    fleet.add(lasting("keeper", "f", min_containers=6))
    passed(fleet, 3.0)
    fleet.add(lasting("late", "f", calls=20, call_s=CALLS_S))

    passed(fleet, 60.0)

    assert fleet.held() == {"keeper": 2, "late": 6}


def test_a_function_without_a_container_gets_one_of_its_tenants() -> None:
    """Of the sibling that has most, once its calls have waited for long; what then has one asks for no more."""
    fleet = crowded(4)
    fleet.add(lasting("crowd", "g", calls=9, call_s=CALLS_S))

    assert passed(fleet, 12.0) == []
    passed(fleet, 30.0)

    assert (len(fleet.of("ver_crowd_f")), len(fleet.of("ver_crowd_g"))) == (3, 1)
    assert fleet.drains == {"crowd": 1}


def test_who_waits_is_told_when_a_place_is_expected() -> None:
    """As long as calls take that run there, less what has passed since; the place is not dealt out to others."""
    fleet = BusyFleet(slices=cpu_nodes(1, 2), terms={"late": Limits(guarantee=0.5)})
    fleet.add(lasting("crowd", "f", calls=9, call_s=(20.0, 20.0)))
    passed(fleet, 25.0)
    fleet.add(lasting("late", "f", calls=1, call_s=CALLS_S))
    passed(fleet, 2.0)

    told = fleet.short["ver_late_f"]

    assert "a place is made for it" in told.reason
    assert told.room_ms == pytest.approx(18_250.0, abs=500.0)


def test_a_borrowing_limit_leaves_slots_free() -> None:
    """Whoever may hold half of the fleet has half of it, though nobody wants the rest."""
    fleet = BusyFleet(slices=cpu_nodes(1, 8), terms={"crowd": Limits(guarantee=0.25, borrow=0.25)})
    fleet.add(lasting("crowd", "f", calls=20, call_s=CALLS_S))

    passed(fleet, 20.0)

    assert fleet.held() == {"crowd": 4}
    assert "(limit borrow)" in fleet.short["ver_crowd_f"].reason


@examples(12, fewer=SLOW)
@given(seed=st.integers(0, 10**6))
def test_shares_settle_and_floors_stay(seed: int) -> None:
    """Whatever tenants come and go: no guaranteed floor is touched, and in the end none has a container more than
    another that waits could have by their weights; then nothing moves any more.
    """
    random = Random(seed)
    fleet = BusyFleet(
        slices=cpu_nodes(3, 4), terms={"keeper": Limits(guarantee=0.2), "t0": Limits(guarantee=0.25)},
        weights={f"t{n}": random.choice((1.0, 1.0, 2.0)) for n in range(3)},
    )  # fmt: skip
    fleet.add(lasting("keeper", "f", min_containers=2, max_containers=2))
    passed(fleet, 3.0)
    for n in range(3):
        for name in "ab"[: random.randint(1, 2)]:
            calls = random.choice((2, 12, 12))
            fleet.add(lasting(f"t{n}", name, calls=calls, call_s=CALLS_S, seed=seed))
        passed(fleet, random.choice((0.5, 15.0)))
    passed(fleet, 90.0)
    drains = fleet.drains.total()
    passed(fleet, 20.0)

    assert fleet.drains["keeper"] == 0
    assert len(fleet.of("ver_keeper_f")) == 2
    held = fleet.held()
    assert sum(held.values()) <= 12
    waiting = {load.record.tenant for load in fleet.loads.values() if len(load.waiting) >= 4}
    for poor in waiting:
        for rich in held.keys() - {poor, "keeper"}:
            spare = held[rich] - 1 >= (3 if rich == "t0" else 0)
            assert not spare or (held[poor] + 1) / fleet.weights[poor] > (held[rich] - 1) / fleet.weights[rich], held
    if len(waiting) == 3:
        assert fleet.drains.total() == drains
