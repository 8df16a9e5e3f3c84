"""What free devices can carry with what is left of their host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_placement.fragmentation.host_fragmentation import (
    GIB,
    HostNeeds,
    NeedCurve,
    host_room,
    leading_bits,
    room_of,
)

NOTHING = HostShare()


def need(cores: float, gib: float = 0) -> HostShare:
    return HostShare(cpu_millis=round(cores * 1000), memory=round(gib * GIB))


def test_cores_that_are_missing_limit_what_devices_carry() -> None:
    """Asks of eight cores for each device: with half of them two devices carry one, with none nothing."""
    needs = HostNeeds([(1.0, 1.0, need(8))])

    assert needs.carried(2, 16, 0) == pytest.approx(2)
    assert needs.carried(2, 8, 0) == pytest.approx(1)
    assert needs.carried(2, 0, 0) == 0
    assert needs.carried(2, 1000, 0) == pytest.approx(2)


def test_memory_limits_as_cores_do() -> None:
    """Of two resources that are half there a quarter is left."""
    needs = HostNeeds([(1.0, 1.0, need(8, 64))])

    assert needs.carried(2, 16, 64) == pytest.approx(1)
    assert needs.carried(2, 8, 64) == pytest.approx(0.5)


def test_an_ask_of_a_part_needs_its_part() -> None:
    """Two cores beside a quarter of a device are eight beside a whole one."""
    assert HostNeeds([(1.0, 0.25, need(2))]).carried(1, 4, 0) == pytest.approx(0.5)


def test_what_is_taken_beside_plenty_costs_nothing() -> None:
    """A container without a GPU costs what devices can carry less: nothing beside plenty, or beside none."""
    needs = HostNeeds([(1.0, 1.0, need(8))])

    assert needs.lost(room_of(8, 96, 0, "T4"), 0, need(16)) == 0
    assert needs.lost(room_of(0, 16, 0, "T4"), 0, need(16)) == 0
    assert needs.lost(room_of(8, 16, 0, "T4"), 0, need(8)) == pytest.approx(1)


def test_cores_for_a_device_are_best_taken_where_the_others_need_them_least() -> None:
    """A container of one device and 16 cores costs more where 16 were meant for two devices."""
    needs = HostNeeds([(1.0, 1.0, need(8))])

    assert needs.lost(room_of(8, 16, 0, "T4"), 1, need(16)) == pytest.approx(2)
    assert needs.lost(room_of(8, 96, 0, "T4"), 1, need(16)) == pytest.approx(1)


def test_a_host_that_does_not_say_bounds_nothing() -> None:
    """Its devices cost what they are."""
    unknown = host_room(2, None, "T4")

    assert HostNeeds([(1.0, 1.0, need(8))]).lost(unknown, 1, need(64, 512)) == 1


def test_without_demand_devices_need_nothing() -> None:
    """As in a fleet that was asked for nothing yet."""
    assert HostNeeds([]).carried(2, 0, 0) == 2


def test_rooms_are_counted_in_steps() -> None:
    """Quarters of devices, of which a begun one is never none; eight steps of cores and four of memory per octave."""
    room = host_room(1.4, need(97, 381), "T4")

    assert (room.quarters, room.cores, room.gib, room.kind) == (6, 96, 320, "T4")
    assert host_room(1.4, need(103, 383), "T4") is room
    assert host_room(0.01, NOTHING, "").quarters == 1
    assert host_room(0, need(-0.5), "").cores == 0


@given(st.integers(0, 10**6), st.integers(1, 8))
def test_leading_bits_round_down(count: int, bits: int) -> None:
    """By less than a step, and exactly what is small."""
    kept = leading_bits(count, bits)

    assert kept <= count
    assert count < 2**bits or count - kept <= count / 2 ** (bits - 1)
    assert count >= 2**bits or kept == count


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0.01, 10)), min_size=1, max_size=6),
    st.floats(0, 200),
    st.floats(0, 200),
)
def test_more_beside_a_device_never_carries_less(needs: list[tuple[float, float]], one: float, other: float) -> None:
    """The curve rises, from 0 (unless nothing is needed) to 1."""
    curve = NeedCurve(needs)
    low, high = sorted((one, other))

    assert curve.at(low) <= curve.at(high) + 1e-9
    assert 0 <= curve.at(low) <= 1 + 1e-9
    assert curve.at(max(need for need, _ in needs)) == pytest.approx(1)
