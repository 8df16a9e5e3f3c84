"""What the controller remembers of its functions, and for how many."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_autoscaler.observations import scaling_memories
from pilotlight_autoscaler.observations.scaling_memories import ScalingMemories
from pilotlight_autoscaler.policy.desired import desired
from pilotlight_autoscaler.policy.function_view import FunctionView
from pilotlight_autoscaler.policy.prediction.function_memory import (
    FIRST_LOAD_S,
    MINUTE_S,
    FunctionMemory,
    restored,
)
from pilotlight_autoscaler.policy.prediction.prewarm_budget import FIRST
from pilotlight_autoscaler.policy.scaling_policy import VersionView
from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState
from tests.autoscaler.builders import demand
from tests.builders.nodes import container
from tests.builders.specs import function_spec

NAME = "acme:shop.greet"
THREE = tuple(container(f"c{number}") for number in range(3))


def view(*containers: ContainerReport, queued: int = 0, name: str = NAME, **options: Any) -> FunctionView:
    asked = demand(queued=queued, service_ms=9e3) if queued else None
    spec = function_spec(max_containers=50, **options)
    seen = VersionView(spec=spec, deployed=True, demand=asked, containers=containers)
    return FunctionView(name=name, versions={"ver_1": seen})


def test_a_function_that_nobody_calls_is_not_remembered() -> None:
    """One that is called is, and then its minutes are."""
    memories = ScalingMemories()
    memories.observe(view(), 0.0)
    assert memories.get(NAME) is None

    memories.observe(view(queued=3), 0.0)
    assert memories.get(NAME) is None  # it has no container yet
    memories.observe(view(*THREE, queued=9), 0.0)
    remembered = memories.get(NAME)
    assert remembered is not None
    assert remembered.carried() == 3  # what was only wished for was not there
    memories.observe(view(), 1.0)
    assert memories.get(NAME) is remembered


def test_short_calls_leave_a_record_that_can_be_read() -> None:
    """None of them runs when somebody looks, but they have come."""
    memories = ScalingMemories()
    asked = demand(arrivals=5, service_ms=1.0)
    seen = VersionView(spec=function_spec(), deployed=True, demand=asked, containers=THREE)
    memory = memories.observe(FunctionView(name=NAME, versions={"ver_1": seen}), 0.0)
    assert restored(memory.record(), 60.0, 0.0).needed == 1


def test_a_past_that_should_not_count_foretells_nothing_until_it_should_again() -> None:
    """The minutes are counted on."""
    memories = ScalingMemories()
    dear = container("c1", timeline={"load": 60_000.0}, age_s=60.0)
    for minute in range(30):
        memories.observe(view(dear, queued=1), minute * MINUTE_S)
    memories.sweep(30 * MINUTE_S)
    memory = memories.get(NAME)
    assert memory is not None
    assert (memory.ahead(), memories.ahead) == (1, {NAME: 1})

    memories.observe(view(dear, forecast=False), 31 * MINUTE_S)
    memories.sweep(31 * MINUTE_S)
    assert (memory.ahead(), memories.ahead) == (0, {})

    memories.observe(view(dear), 31 * MINUTE_S)
    assert memory.ahead() == 1


def test_how_long_a_start_takes_is_known_of_what_was_started() -> None:
    """Of others nothing is: a warm window's containers begin when it opens."""
    memories = ScalingMemories()
    assert memories.load_s(NAME) == 0.0
    memories.observe(view(container(timeline={"load": 5_000.0}, age_s=9.0)), 0.0)
    assert memories.load_s(NAME) == 5.0


def test_each_start_is_timed_once_when_its_container_is_ready() -> None:
    """Not while it loads."""
    memories = ScalingMemories()
    steps = {"fetch": 1_000.0, "load": 4_000.0}
    loading = container("c1", state=ContainerState.LOADING, timeline=steps, age_s=9.0)
    memory = memories.observe(view(loading, queued=1), 0.0)
    assert memory.load_s == FIRST_LOAD_S

    for _ in range(3):
        memories.observe(view(container("c1", timeline=steps, age_s=9.0), queued=1), 0.0)
    assert memory.load_s == 5.0


def test_who_was_parked_says_nothing_of_a_start() -> None:
    """A controller that has just begun to lead would park nothing any more: a start seemed to take milliseconds."""
    memories = ScalingMemories()
    back = container("c1", timeline={"unpark": 5.0}, age_s=60.0)
    memories.observe(view(back, queued=1), 0.0)
    assert memories.load_s(NAME) in (0.0, FIRST_LOAD_S)

    memories.observe(view(back, container("c2", timeline={"enter": 4_000.0}, age_s=60.0), queued=1), 1.0)
    assert memories.load_s(NAME) == 4.0


def test_a_sweep_ends_the_minutes_of_all_in_turn() -> None:
    """A few at a time; those that changed can be stored."""
    memories = ScalingMemories()
    for number in range(5):
        memories.observe(view(*THREE, queued=1, name=f"acme:shop.f{number}"), 0.0)
    memories.changed.clear()

    for turn, done in ((1, 2), (2, 4), (3, 5)):
        memories.sweep(MINUTE_S + turn, sweeps=3)
        assert len(memories.changed) == done


def test_what_is_foretold_is_known_before_anybody_calls() -> None:
    """And no longer once it is not."""
    memories = ScalingMemories()
    memory = FunctionMemory(60.0, 0.0)
    memory.on_load(22.0)
    for minute in range(200):
        memory.observe(0 if minute % 3 else 3, minute * MINUTE_S)
    memories.restore({NAME: memory})

    memories.sweep(201 * MINUTE_S)
    assert memories.ahead == {NAME: 3}
    for minute in range(202, 700):
        memories.sweep(minute * MINUTE_S)
    assert memories.ahead == {}


def test_the_one_that_was_heard_of_least_recently_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the tenant that has most. Its past is there when it is called again, and is stored meanwhile."""
    monkeypatch.setattr(scaling_memories, "MOST_FUNCTIONS", 3)
    memories = ScalingMemories()
    for minute in range(5):
        memories.observe(view(*THREE, queued=1, name="zoo:a"), minute * MINUTE_S)
        for name in ("acme:a", "acme:b", "acme:a"):
            memories.observe(view(*THREE, queued=1, name=name), minute * MINUTE_S)
    memories.observe(view(*THREE, queued=1, name="acme:c"), 4 * MINUTE_S)

    assert len(memories) == 3
    assert memories.get("acme:b") is None
    assert memories.get("zoo:a") is not None
    assert memories.take_changed(10).keys() == {"zoo:a", "acme:a", "acme:b"}
    again = memories.observe(view(*THREE, queued=1, name="acme:b"), 5 * MINUTE_S)
    assert again.age_minutes == 5


def test_packed_ones_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one packed first is forgotten."""
    monkeypatch.setattr(scaling_memories, "MOST_FUNCTIONS", 1)
    monkeypatch.setattr(scaling_memories, "MOST_PACKED", 1)
    memories = ScalingMemories()
    for name in ("acme:a", "acme:b", "acme:c"):
        memories.observe(view(*THREE, queued=1, name=name), 0.0)
        memories.observe(view(*THREE, queued=1, name=name), MINUTE_S)

    assert memories.take_changed(10).keys() == {"acme:b", "acme:c"}


def test_a_minute_with_calls_is_to_be_stored_whoever_ends_it() -> None:
    """A pass, which looks more often than the sweep."""
    memories = ScalingMemories()
    for second in range(0, 240, 15):
        memories.observe(view(*THREE, queued=1), float(second))
    assert list(memories.changed) == [NAME]
    assert list(memories.take_changed(5)) == [NAME]
    assert not memories.changed


def test_short_calls_that_no_pass_sees_running_count() -> None:
    """Their arrivals were told."""
    memories = ScalingMemories()
    seen = VersionView(spec=function_spec(), deployed=True, demand=demand(arrivals=7), containers=THREE)
    memory = memories.observe(FunctionView(name=NAME, versions={"ver_1": seen}), 0.0)
    assert memory.carried() == 1


def test_forecasts_of_one_tenant_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of others have a bound of their own."""
    monkeypatch.setattr(scaling_memories, "MOST_AHEAD", 4)
    memories = ScalingMemories()
    known = {}
    for name in ("acme:shop.a", "acme:shop.b", "zoo:shop.a"):
        known[name] = memory = FunctionMemory(60.0, 0.0)
        memory.on_load(22.0)
        for minute in range(200):
            memory.observe(0 if minute % 3 else 3, minute * MINUTE_S)
    memories.restore(known)
    memories.sweep(201 * MINUTE_S, sweeps=1)
    assert sum(count for name, count in memories.ahead.items() if name.startswith("acme:")) == 4
    assert memories.ahead["zoo:shop.a"] == 3


def test_containers_that_calls_use_are_no_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy tenant's other functions are foretold as those of any."""
    monkeypatch.setattr(scaling_memories, "MOST_AHEAD", 4)
    memories = ScalingMemories()
    for name in ("acme:shop.a", "acme:shop.b", "acme:shop.c"):
        memory = FunctionMemory(60.0, 0.0)
        memory.on_load(22.0)
        for minute in range(200):
            memory.observe(3, minute * MINUTE_S)
        memories.restore({name: memory})
    memories.sweep(200 * MINUTE_S, sweeps=1)
    assert memories.ahead == {"acme:shop.a": 3, "acme:shop.b": 3, "acme:shop.c": 3}


def test_a_wish_observes_and_what_it_has_ahead_uses_up_the_budget() -> None:
    """Whoever asks: the controller's passes and a simulation ask the same."""
    memories = ScalingMemories()
    called = view(*THREE, queued=9)
    assert memories.wish(called, 0.0) == desired(called, FunctionMemory(60.0, 0.0), 0.0)
    memory = memories.get(NAME)
    assert memory is not None
    assert memory.needed == 3

    foretold = FunctionMemory(60.0, 0.0)
    foretold.on_load(22.0)
    for minute in range(200):
        foretold.observe(0 if minute % 3 else 3, minute * MINUTE_S)
    memories.restore({NAME: foretold})
    for minute in range(201, 204):
        memories.end_minutes(NAME, minute * MINUTE_S)
        memories.wish(view(), minute * MINUTE_S + 1)
    memories.end_minutes(NAME, 300 * MINUTE_S, most_missed=100)
    assert foretold.prewarms.per_day == FIRST // 2


def test_minutes_of_one_function_end_as_in_a_sweep() -> None:
    """However long nobody spoke of it, if nobody called it."""
    swept, ended = ScalingMemories(), ScalingMemories()
    for memories in (swept, ended):
        memories.observe(view(*THREE, queued=9), 0.0)
    for minute in range(1, 61):
        swept.sweep(minute * MINUTE_S)
    ended.end_minutes(NAME, 60 * MINUTE_S, most_missed=60)
    records = [memories.take_changed(1) for memories in (swept, ended)]
    assert records[0] == records[1]
    assert ended.end_minutes("acme:shop.none", 0.0) == 0
