"""The prospects of what is left on a device, against the recurrence done by hand and what must hold for any mix."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight_placement.fragmentation.share_fragmentation import (
    MOST_CORES,
    WHOLE,
    FreeCapacity,
    TypicalTask,
    outlook,
    round_to_step,
    table_of,
)

HALF = TypicalTask(weight=0.5, cpu=1000, milli=500)
MORE = TypicalTask(weight=0.5, cpu=1000, milli=600)
PLENTY = MOST_CORES * 1000


def tasks() -> st.SearchStrategy[list[TypicalTask]]:
    """Mixes of shares, whole devices, several of them, and tasks without GPU."""
    share = st.builds(
        TypicalTask,
        weight=st.floats(0.1, 5),
        cpu=st.integers(0, 20_000),
        milli=st.integers(1, 99).map(lambda n: 10 * n),
        models=st.sampled_from([frozenset[str](), frozenset({"a"}), frozenset({"a", "b"})]),
    )
    whole = st.builds(
        TypicalTask, weight=st.floats(0.1, 5), cpu=st.integers(0, 90_000), milli=st.just(WHOLE), count=st.integers(1, 8)
    )
    plain = st.builds(
        TypicalTask, weight=st.floats(0.1, 5), cpu=st.integers(100, 30_000), milli=st.just(0), count=st.just(0)
    )
    return st.lists(share | whole | plain, min_size=1, max_size=6)


def rooms() -> st.SearchStrategy[FreeCapacity]:
    """Nodes with up to eight devices, whole ones more often than by chance."""
    free = st.integers(0, 100).map(lambda n: 10 * n) | st.just(WHOLE)
    return st.builds(
        FreeCapacity,
        model=st.sampled_from("ab"),
        cpu=st.integers(0, 128_000),
        free=st.lists(free, min_size=1, max_size=8).map(tuple),
    )


def test_one_offer_brings_what_fits() -> None:
    """With one task to come, a device can expect the sizes of those that fit, by their weights."""
    table = table_of([HALF, MORE], offers=1, horizon=1)
    assert table[100][-1] == pytest.approx(550)
    assert table[55][-1] == pytest.approx(250)
    assert table[49][-1] == 0


def test_two_offers_wait_for_what_is_better() -> None:
    """K_2(1000) by hand: after 600 nothing fits (600), after 500 another 500 may come (500 + 250)."""
    table = table_of([HALF, MORE], offers=1, horizon=2)
    assert table[100][-1] == pytest.approx(0.5 * 600 + 0.5 * 750)


def test_cores_limit_what_a_device_can_carry() -> None:
    """A device with one core left can carry one task of one core, whatever room it has."""
    table = table_of([HALF], offers=0.5, horizon=50)
    assert table[100][1] == pytest.approx(500)
    assert table[100][2] == pytest.approx(1000)
    assert table[100][0] == 0


def test_a_task_of_several_devices_counts_for_each() -> None:
    """Two devices with eight cores are offered as one device with four, twice as often."""
    pair = TypicalTask(weight=1, cpu=8000, milli=WHOLE, count=2)
    table = table_of([pair], offers=2, horizon=1)
    assert table[100][4] == pytest.approx(1000)
    assert table[100][3] == 0


@given(mix=tasks(), model=st.sampled_from("ab"))
@settings(max_examples=20, deadline=None)
def test_more_room_and_more_cores_never_expect_less(mix: list[TypicalTask], model: str) -> None:
    """The table rises along both sides, and no device expects to carry more than it has room for."""
    table = outlook(mix, "ab").tables[model]
    for row, above in pairwise(table):
        assert all(low <= high + 1e-9 for low, high in zip(row, above, strict=True))
    for number, row in enumerate(table):
        assert list(row) == pytest.approx(sorted(row))
        assert row[-1] <= 10 * number + 1e-6


@given(mix=tasks(), room=rooms())
@settings(max_examples=50, deadline=None)
def test_the_cheapest_place_is_one_of_those_that_fit(mix: list[TypicalTask], room: FreeCapacity) -> None:
    """What is left keeps what was there less what the task takes; None exactly if nothing fits."""
    task = mix[0]
    seen = outlook(mix, "ab")
    found = seen.cheapest(room, task)
    fits = task.cpu <= room.cpu and (
        not task.count or (task.may_use(room.model) and sum(free >= task.milli for free in room.free) >= task.count)
    )
    assert (found is not None) == fits
    if found is not None:
        cost, left = found
        assert left in list(room.after(task))
        assert left.cpu == room.cpu - task.cpu
        assert sum(left.free) == sum(room.free) - task.count * task.milli
        assert min(left.free) >= 0
        assert cost == pytest.approx(min(seen.costs(room, task)))


def test_what_fits_exactly_costs_least() -> None:
    """A half goes where a half is free, not where 600 would still fit."""
    seen = outlook([HALF, MORE], ["a"])
    found = seen.cheapest(FreeCapacity(model="a", cpu=PLENTY, free=(600, 500)), HALF)
    assert found is not None
    assert found[1].free == (600, 0)


def test_costs_that_differ_little_are_alike() -> None:
    """Steps of ten milli-GPU, so that the order of nodes decides between nearly equal places."""
    assert round_to_step(101.0) == round_to_step(98.0) == 10
    assert round_to_step(120.0) > round_to_step(101.0)


def test_a_scarce_model_costs_more() -> None:
    """The price of a model raises the cost of its room in proportion."""
    seen = outlook([HALF, MORE], ["a"])
    room = FreeCapacity(model="a", cpu=PLENTY, free=(1000,))
    left = next(room.after(HALF))
    assert seen.cost(room, left, price=1.0) == pytest.approx(2 * seen.cost(room, left))
    assert seen.cost(room, left) > 0


def test_a_task_without_gpu_prefers_cores_that_nobody_needs() -> None:
    """It costs less where the devices are taken, and among those where fewer cores stay."""
    seen = outlook([HALF, TypicalTask(weight=1, cpu=4000, milli=0, count=0)], ["a"])
    plain = TypicalTask(weight=1, cpu=4000, milli=0, count=0)

    def cost(cpu: int, *free: int) -> float:
        found = seen.cheapest(FreeCapacity(model="a", cpu=cpu, free=free), plain)
        assert found is not None
        return found[0]

    assert cost(5000, 0, 0) < cost(5000, 1000, 1000)
    assert cost(5000, 0, 0) < cost(9000, 0, 0)


def test_room_for_tasks_of_several_devices_is_kept() -> None:
    """Breaking the last pair costs more than using what no pair can."""
    seen = outlook([HALF, TypicalTask(weight=1, cpu=2000, milli=WHOLE, count=2)], ["a"])
    pair = FreeCapacity(model="a", cpu=PLENTY, free=(1000, 1000))
    single = FreeCapacity(model="a", cpu=PLENTY, free=(1000, 0))
    assert seen.hosting(pair) > seen.hosting(single) == 0
    assert seen.costs(pair, HALF)[0] > seen.costs(single, HALF)[0]


def test_models_that_the_same_tasks_may_use_share_a_table() -> None:
    """Nothing is computed twice; a model that fewer tasks may use has a table of its own."""
    seen = outlook([HALF, TypicalTask(weight=1, cpu=1000, milli=400, models=frozenset({"c"}))], "abc")
    assert seen.tables["a"] is seen.tables["b"]
    assert seen.tables["c"][100][-1] > seen.tables["a"][100][-1]
