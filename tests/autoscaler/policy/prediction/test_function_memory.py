"""What is remembered of a function, and that a leader after this one knows it too."""

from __future__ import annotations

import math
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.policy.prediction.function_memory import (
    FIRST_LOAD_S,
    LOADS,
    MINUTE_S,
    MOST_BYTES,
    MOST_MISSED,
    FunctionMemory,
    restored,
)
from pilotlight_autoscaler.policy.prediction.shadow_pool import LIKELY


def lived(needed: list[int], *, load_s: float = 22.0, window_s: float = 60.0, begin: int = 0) -> FunctionMemory:
    """After minutes in which so many containers were needed."""
    memory = FunctionMemory(window_s, begin * MINUTE_S)
    for _ in range(LOADS):
        memory.on_load(load_s)
    for minute, each in enumerate(needed, start=begin):
        memory.observe(each, minute * MINUTE_S + 1.0)
    memory.advance((begin + len(needed)) * MINUTE_S)
    return memory


def test_a_start_takes_as_long_as_one_in_twenty_at_most() -> None:
    """A single slow one does not count, once there are twenty."""
    memory = FunctionMemory(60.0, 0.0)
    assert memory.load_s == FIRST_LOAD_S
    memory.on_load(5.0)
    assert memory.load_s == 5.0
    memory.on_load(100.0)
    for _ in range(LOADS - 2):
        memory.on_load(6.0)
    assert memory.load_s == 6.0


def test_what_was_needed_within_the_window_is_carried() -> None:
    """The most of it; a version that takes over has as much, for the window or a minute."""
    memory = lived([3, 7, 2], window_s=120.0)
    assert memory.carried() == 7

    at = 3 * MINUTE_S
    memory.on_deploy("ver_1", 120.0, at)
    assert memory.taken_over("ver_1", at) == 0
    memory.on_deploy("ver_2", 120.0, at)
    assert memory.taken_over("ver_2", at) == 7
    assert memory.taken_over("ver_1", at) == 0
    assert memory.taken_over("ver_2", at + 121.0) == 0


def test_what_is_busy_all_day_is_foretold() -> None:
    """By a method that costs less than none."""
    memory = lived([3 + minute % 3 for minute in range(200)] + [0])

    assert memory.ahead() >= 3
    assert memory.is_known


def test_a_start_that_takes_no_time_is_not_prevented() -> None:
    """A cold start of a tenth of a second is worth six idle seconds."""
    memory = lived(([1] + [0] * 9) * 100, load_s=0.1)

    assert memory.ahead() == 0
    assert not memory.is_known


def test_a_clock_that_goes_back_ends_no_minute_twice() -> None:
    """And one that leaps ahead ends a bounded number."""
    memory = lived([1, 0, 2, 0])
    before = memory.record()
    memory.advance(MINUTE_S)
    assert memory.record() == before

    memory.advance(1e9)
    assert msgspec.msgpack.decode(memory.record())["minute"] == 1e9 // MINUTE_S
    assert memory.ahead() == 0
    assert MOST_MISSED < 10_000


def test_a_clock_that_was_wrong_does_not_stop_what_is_learnt() -> None:
    """It was a day ahead, and is set right: the minutes that follow are counted as any others."""
    memory = lived([2] * 60)
    day = 1_440 * MINUTE_S
    memory.advance(day)
    ended = memory.age_minutes

    for minute in range(5):
        memory.observe(1, (100 + minute) * MINUTE_S)

    assert memory.age_minutes == ended + 4


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(-1e5, 1e5)), max_size=60))
def test_whatever_a_clock_does_little_is_done(lived: list[tuple[int, float]]) -> None:
    """At each step it ends a bounded number of minutes, and what it foretells is never more than was needed."""
    memory, at = FunctionMemory(60.0, 1e9), 1e9
    for needed, step_s in lived:
        at += step_s
        before = memory.age_minutes
        memory.observe(needed, at)
        assert memory.age_minutes - before <= MOST_MISSED
        assert 0 <= memory.ahead() <= max(each for each, _ in lived)


@given(st.integers(0, 2**32), st.sampled_from((0.1, 5.0, 60.0)))
def test_the_next_leader_says_what_this_one_says(seed: int, load_s: float) -> None:
    """From at most two KiB."""
    random = Random(seed)
    busy = random.random()
    needed = [random.randrange(1, 9) if random.random() < busy else 0 for _ in range(random.randrange(1, 400))]
    memory = lived(needed, load_s=load_s, begin=random.randrange(10**6))
    stored = memory.record()
    assert len(stored) <= MOST_BYTES

    other = restored(stored, 60.0, 0.0)

    assert other.method == memory.method
    assert other.chances.odds() == pytest.approx(memory.chances.odds(), abs=0.05)
    if not other.method.startswith(("forecast", LIKELY)):  # the former's minutes of density begin anew
        assert other.ahead() == memory.ahead()
    assert other.load_s == pytest.approx(memory.load_s, abs=0.001)
    assert other.costs.keys() == memory.costs.keys()
    for name, cost in memory.costs.items():
        assert other.costs[name].total(1.0) == pytest.approx(cost.total(1.0), abs=0.1)
    assert len(other.record()) <= MOST_BYTES


def test_a_record_is_short_whatever_was_lived() -> None:
    """Idle times of every length, on all levels."""
    random = Random(7)
    needed = []
    for _ in range(500):
        needed += [random.randrange(1, 5)] + [0] * int(math.exp(random.uniform(0, 5)))
    assert len(lived(needed).record()) <= MOST_BYTES


def test_what_is_no_record_is_refused() -> None:
    """And one of bins that there are not does no harm."""
    with pytest.raises(msgspec.MsgspecError):
        restored(b"\x93", 60.0, 0.0)
    strange = {"minute": 5, "idle": [[[9_999, 16], [-4, 16]]], "never": [0], "ages": [0]}
    assert restored(msgspec.msgpack.encode(strange), 60.0, 600.0).ahead() == 0
