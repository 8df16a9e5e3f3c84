"""What is replayed is what a controller would have remembered and decided."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from pilotlight_autoscaler.policy.prediction.call_chances import MOST_KEPT
from pilotlight_autoscaler.policy.prediction.function_memory import MINUTE_S, WORTH, FunctionMemory
from pilotlight_autoscaler.policy.prediction.minute_methods import FixedWarmth
from pilotlight_autoscaler.simulator.minutes.minute_model import KeepAliveCost, levels_of, ttl_cost_of
from pilotlight_autoscaler.simulator.minutes.minute_replay import chosen_costs, method_costs, summed


def lives(seed: int) -> list[int]:
    """Minutes of a function with a habit, bursts and nights."""
    random = Random(seed)
    period, busy = random.randrange(2, 90), random.random() < 0.5
    return [random.randrange(4) if busy and minute // 240 % 2 else int(minute % period == 0) for minute in range(1_000)]


@pytest.mark.parametrize("seed", range(6))
def test_a_replay_is_charged_for_what_a_memory_foretells(seed: int) -> None:
    """Minute by minute, but for the minute of a call itself, in which its containers stay, and prewarms' budget."""
    needed, load_s = lives(seed), 30.0
    memory = FunctionMemory(0.0, 0.0)
    memory.on_load(load_s)
    cold, idle = 0, 0.0
    for minute, count in enumerate(needed):
        memory.advance(minute * MINUTE_S)
        memory.prewarms = type(memory.prewarms)()
        level = memory.ahead()
        used = min(level, count)
        cold, idle = cold + count - used, idle + level - used + used / 2
        memory.observe(count, minute * MINUTE_S)

    (cost,) = chosen_costs([needed], [load_s * WORTH / MINUTE_S])

    assert cost.cold == cold
    assert cost.idle_minutes == pytest.approx(idle)


def test_a_time_to_live_is_charged_for_whole_minutes() -> None:
    """Half of one in which it is used; a start for each container that was not there."""
    costs = method_costs([[1, 0, 0, 2, 0, 0, 0, 1]], {"two": partial(FixedWarmth, 2), "three": partial(FixedWarmth, 3)})
    assert costs["two"] == KeepAliveCost(4, 2 + 4, 4)
    assert costs["three"] == KeepAliveCost(3, 2 + 0.5 + 6, 3)
    assert method_costs([[MOST_KEPT + 5, 0]], {"one": partial(FixedWarmth, 1)})["one"].idle_minutes == MOST_KEPT


def test_each_function_begins_unknown() -> None:
    """Two alike cost twice as much as one."""
    one, two = chosen_costs([lives(1)], [10.0]), chosen_costs([lives(1)] * 2, [10.0])
    assert two == [KeepAliveCost(2 * cost.cold, 2 * cost.idle_minutes, 2 * cost.starts) for cost in one]


@pytest.mark.parametrize("minutes", [0, 1, 5, 60])
def test_a_time_to_live_is_charged_by_idle_times_as_minute_by_minute(minutes: int) -> None:
    """Each level of concurrency alone; of several functions the sum."""
    functions = [lives(seed) for seed in range(4)]
    costs = [method_costs([each], {"kept": partial(FixedWarmth, minutes, max(each))})["kept"] for each in functions]
    assert summed(costs) == ttl_cost_of([series for each in functions for series in levels_of(each)], minutes)
