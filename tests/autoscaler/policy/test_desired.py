"""What a function should have, by which rule, and when to look again."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as replace_told

from pilotlight_autoscaler.policy.desired import COOLDOWN_S, desired, more_needs, purpose_of
from pilotlight_autoscaler.policy.function_view import PLANNED_MARGIN_S, FunctionView, PlannedCalls
from pilotlight_autoscaler.policy.prediction.function_memory import LOADS, MINUTE_S, FunctionMemory
from pilotlight_autoscaler.policy.scaling_policy import VersionView
from pilotlight_autoscaler.policy.wish import ScalingRule, Warmth
from pilotlight_core.model.calendar.warm_windows import Warm
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.rollouts.capacity import ArmCapacity
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_core.model.scaling.scale_bounds import bounds_of
from pilotlight_core.model.scaling.scale_record import BoundOverride, ScaleRecord
from tests.autoscaler.builders import demand, wish_of
from tests.builders.nodes import container
from tests.builders.specs import function_spec

AT = 1_000 * MINUTE_S


def view(*containers: Any, deployed: bool = True, told: dict[str, Any] | None = None, **options: Any) -> VersionView:
    asked = demand(**told) if told else None
    return VersionView(spec=function_spec(**options), deployed=deployed, demand=asked, containers=containers)


def function(**versions: VersionView) -> FunctionView:
    return FunctionView(name="acme:shop.greet", versions=versions)


@cache
def busy(needed: int, minutes: int = 300) -> FunctionMemory:
    """A function that has needed so many containers in every third minute, whose start takes 22 s; only read."""
    memory = FunctionMemory(60.0, AT - minutes * MINUTE_S)
    for _ in range(LOADS):
        memory.on_load(22.0)
    for minute in range(minutes):
        memory.observe(0 if minute % 3 else needed, AT - (minutes - minute) * MINUTE_S)
    memory.advance(AT)
    return memory


@pytest.mark.parametrize(
    ("rule", "count", "told"),
    [
        (ScalingRule.UNFUNDED, 0, None),
        (ScalingRule.UNFUNDED, 0, {"queued": 0, "service_ms": 6e3, "backlog": 30}),
        (ScalingRule.CALLS, 1, {"queued": 1}),
        (ScalingRule.CALLS, 1, {"queued": 1, "service_ms": 6e3, "backlog": 30}),
    ],
)
def test_without_money_nothing_is_kept_but_for_calls(
    rule: ScalingRule, count: int, told: dict[str, Any] | None
) -> None:
    """Neither jobs nor a floor nor a forecast, nor what is there after a start or to serve better."""
    there = [container(f"c{number}") for number in range(3)]
    seen = replace(view(*there, told=told, min_containers=2, buffer_containers=2), unfunded="the budget is used up")
    memory = busy(3)
    wish = desired(function(v1=seen), memory, AT)
    assert (wish.rule, wish.count, wish.holds, wish.ahead) == (rule, count, False, 0)
    if not count:
        assert (wish.because, more_needs(function(v1=seen), wish)) == (
            "the budget is used up", "money: a higher budget, or its next period",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "count", "seen"),
    [
        (ScalingRule.NOBODY_CALLS, 0, view()),
        (ScalingRule.CALLS, 3, view(told={"queued": 3, "service_ms": 9e3})),
        (ScalingRule.CEILING, 2, view(told={"queued": 3, "service_ms": 9e3}, max_containers=2)),
        (ScalingRule.BUFFER, 2, view(told={"queued": 1}, buffer_containers=1)),
        (ScalingRule.FLOOR, 2, view(told={"queued": 1}, min_containers=2)),
        (ScalingRule.BACKLOG, 4, view(told={"queued": 1, "service_ms": 6e3, "backlog": 30})),
        (ScalingRule.SHUT_DOWN, 0, replace(view(told={"queued": 3}), is_shut_down=True)),
    ],
)
def test_the_rule_that_asks_for_most_is_named(rule: ScalingRule, count: int, seen: VersionView) -> None:
    """With a sentence that says why."""
    wish = wish_of(seen)

    assert (wish.rule, wish.count) == (rule, count)
    without = Warmth.NONE if seen.is_shut_down else Warmth.PARKED  # a start takes a second, as long as none has ended
    assert wish.tier is (Warmth.READY if count else without)
    assert wish.because


def test_a_forecast_is_a_floor_that_calls_may_exceed() -> None:
    """What it alone asks for is counted, and started for it."""
    wish = desired(function(ver_1=view()), busy(4), AT)
    assert (wish.rule, wish.count, wish.ahead) == (ScalingRule.FORECAST, 4, 4)
    assert purpose_of(view(), wish, 0) is Purpose.PREWARM

    called = view(told={"queued": 9, "service_ms": 9e3})
    wish = desired(function(ver_1=called), busy(4), AT)
    assert (wish.rule, wish.count, wish.ahead) == (ScalingRule.CALLS, 9, 0)
    assert purpose_of(called, wish, 8) is Purpose.CALL


def test_a_forecast_never_asks_for_more_than_the_ceiling() -> None:
    """Nor for a version that is shut down, or superseded. What it has below the ceiling is still for it."""
    bound = desired(function(ver_1=view(max_containers=2)), busy(4), AT)
    assert (bound.rule, bound.count, bound.ahead) == (ScalingRule.CEILING, 2, 2)
    assert purpose_of(view(max_containers=2), bound, 0) is Purpose.PREWARM
    assert desired(function(ver_1=replace(view(), is_shut_down=True)), busy(4), AT).count == 0
    assert desired(function(ver_1=view(deployed=False)), busy(4), AT).count == 0


def test_a_new_version_takes_over_what_the_one_before_it_carried() -> None:
    """At once, and for as long as a container of it would stay idle; calls of the old one end in their own time."""
    memory = FunctionMemory(60.0, AT)
    memory.on_deploy("ver_1", 60.0, AT)
    memory.observe(5, AT)
    old = view(*(container(f"c{n}", running=1) for n in range(5)), told={"running": 5}, deployed=False)
    memory.on_deploy("ver_2", 60.0, AT)

    wish = desired(function(ver_1=old, ver_2=view()), memory, AT)

    assert wish.by_version["ver_1"] >= wish.by_version["ver_2"] == 5
    assert wish.rule is ScalingRule.TAKEN_OVER
    assert purpose_of(view(), wish, 0) is Purpose.CALL
    assert desired(function(ver_2=view()), memory, AT + 61.0).count == 0


def test_jobs_behind_the_calls_are_demand() -> None:
    """As many as end them within a minute; a start that takes long must work for ten times as long."""
    jobs = view(told={"queued": 1, "service_ms": 6e3, "backlog": 1_000}, max_containers=500)
    assert wish_of(jobs).count == 1 + 100

    slow = FunctionMemory(60.0, AT)
    slow.on_load(60.0)
    assert desired(function(ver_1=jobs), slow, AT).count == 1 + 10


def test_jobs_whose_time_comes_have_their_containers_by_then() -> None:
    """They start as early as a start takes, and a little earlier; `look_again_at` says when."""
    memory = FunctionMemory(60.0, AT)
    memory.on_load(20.0)
    jobs = PlannedCalls(due_in_s=20.0 + PLANNED_MARGIN_S + 5.0, calls=10)
    seen = replace(function(ver_1=view()), planned=jobs)
    wish = desired(seen, memory, AT)
    assert (wish.count, wish.look_again_at) == (0, AT + 5.0)

    soon = replace(seen, planned=replace(jobs, due_in_s=20.0 + PLANNED_MARGIN_S))
    wish = desired(soon, memory, AT + 5.0)
    assert (wish.rule, wish.count) == (ScalingRule.PLANNED, 1)  # ten jobs of 20 s each, within ten starts
    assert wish.because == "at least 10 jobs are due within the time of a start"
    assert purpose_of(soon.versions["ver_1"], wish, 0) is Purpose.CALL

    calls = function(ver_1=view(told={"queued": 3, "service_ms": 60e3}))
    assert desired(replace(calls, planned=soon.planned), memory, AT).count == 3 + 3
    due = replace(jobs, due_in_s=-1.0)
    assert desired(replace(calls, planned=due), memory, AT).count == 3  # they are among the calls by now
    assert desired(replace(seen, planned=replace(jobs, due_in_s=1.0, version="ver_0")), memory, AT).count == 0


def test_planned_jobs_have_as_many_containers_as_their_kind_has_needed() -> None:
    """How long its calls run is remembered when nobody calls."""
    memory = FunctionMemory(60.0, AT)
    memory.on_load(2.0)
    soon = replace(function(ver_1=view(max_containers=500)), planned=PlannedCalls(due_in_s=1.0, calls=30))
    assert desired(soon, memory, AT).count == 1
    memory.service_s = 60.0
    assert desired(soon, memory, AT).count == 30
    memory.service_s = 0.1
    assert desired(soon, memory, AT).count == 1


def test_none_goes_while_a_home_is_silent_or_one_was_just_started() -> None:
    """However few the calls need."""
    there = tuple(container(f"c{n}", idle_s=300.0) for n in range(4))
    silent = wish_of(replace(view(*there), home_is_silent=True))
    assert (silent.holds, silent.rule, silent.count) == (True, ScalingRule.SILENT_HOME, 4)

    memory = FunctionMemory(60.0, AT)
    memory.on_up(AT)
    hot = desired(function(ver_1=view(*there)), memory, AT + 1.0)
    assert (hot.holds, hot.rule) == (True, ScalingRule.COOLDOWN)
    assert hot.look_again_at <= AT + COOLDOWN_S
    assert not desired(function(ver_1=view(*there)), memory, AT + COOLDOWN_S).holds
    assert not desired(function(ver_1=view(*there, scaledown_window=2.0)), memory, AT + 2.0).holds


def test_a_lowered_ceiling_counts_at_once_whatever_was_started() -> None:
    """Somebody wants fewer; a silent home may have calls for all of them."""
    there = tuple(container(f"c{n}", idle_s=3.0) for n in range(4))
    memory = FunctionMemory(60.0, AT)
    memory.on_up(AT)
    assert desired(function(ver_1=view(*there, max_containers=2)), memory, AT + 1.0).count == 2
    assert wish_of(replace(view(*there, max_containers=2), home_is_silent=True)).count == 4


def test_none_goes_without_which_the_others_would_be_used_too_much() -> None:
    """Calls that ended just now leave containers idle that the next ones need."""
    there = tuple(container(f"c{n}", idle_s=300.0) for n in range(4))
    seen = replace(view(*there, told={"service_ms": 2_000.0}), rate=1.1)
    wish = wish_of(seen)
    assert (wish.count, wish.rule, wish.holds) == (3, ScalingRule.CONSOLIDATION, False)
    assert "1.1 calls arrive a second" in wish.because
    assert wish_of(replace(seen, rate=99.0)).count == 4


def test_it_says_when_to_look_again() -> None:
    """When an idle container's window ends; never, if nothing would come of it."""
    assert wish_of(view(), at=AT).look_again_at == math.inf
    assert wish_of(view(container(idle_s=20.0)), at=AT).look_again_at == AT + 40.0
    assert desired(function(ver_1=view()), busy(2), AT + 1.0).look_again_at == AT + MINUTE_S


def test_it_says_what_it_would_take_to_have_more() -> None:
    """The ceiling, a call, or a deploy."""
    full = view(told={"queued": 3, "service_ms": 9e3}, max_containers=2)
    assert "max_containers" in more_needs(function(ver_1=full), wish_of(full))
    assert "min_containers" in more_needs(function(ver_1=view()), wish_of(view()))
    old = view(deployed=False)
    assert "deployed" in more_needs(function(ver_1=old), wish_of(old))


def said(**values: int) -> ScaleRecord:
    """What people say until a minute after `AT`."""
    words = {field: BoundOverride(value=value, at=AT, ends_at=AT + MINUTE_S) for field, value in values.items()}
    return ScaleRecord(tenant="acme", app="shop", function="greet", **words)


def bounded(seen: VersionView, record: ScaleRecord | None = None) -> VersionView:
    return replace(seen, bounds=bounds_of(seen.spec, record, AT))


def test_people_s_word_is_named_with_its_end() -> None:
    """As a floor, a buffer and a ceiling, in the sentence of the rule that asks; then another may hold."""
    whose = "by 'pilotlight scale', until 1970-01-01 16:41 UTC"
    floor = wish_of(bounded(view(), said(min_containers=2)), at=AT)
    assert (floor.rule, floor.count, floor.because) == (ScalingRule.FLOOR, 2, f"min_containers keeps 2 ({whose})")
    assert floor.look_again_at == AT + MINUTE_S

    called = view(told={"queued": 3, "service_ms": 9e3}, buffer_containers=1)
    beyond = wish_of(bounded(called, said(buffer_containers=2)), at=AT)
    assert (beyond.rule, beyond.count) == (ScalingRule.BUFFER, 5)
    assert f"buffer_containers=2 ({whose}) beyond" in beyond.because
    most = wish_of(bounded(called, said(max_containers=2)), at=AT)
    assert (most.rule, most.count) == (ScalingRule.CEILING, 2)
    assert most.because.startswith(f"max_containers=2 ({whose}) allows no more")
    assert desired(function(ver_1=bounded(view(), said(max_containers=2))), busy(4), AT).count == 2


def test_a_warm_window_is_a_rule_of_its_own() -> None:
    """For what it keeps beyond the floor that is there at any time."""
    open_one = view(min_containers=1, warm=(Warm("00:00-24:00", 3),))
    wish = wish_of(bounded(open_one), at=AT)
    assert (wish.rule, wish.count, wish.because) == (ScalingRule.WARM, 3, "3 are kept (warm window 00:00-24:00 UTC)")
    assert [purpose_of(open_one, wish, n) for n in range(1)] == [Purpose.FLOOR]
    assert [purpose_of(bounded(open_one), wish, n) for n in range(3)] == [Purpose.FLOOR, Purpose.WARM, Purpose.WARM]
    assert wish_of(bounded(view(min_containers=3, warm=(Warm("00:00-24:00", 2),)))).rule is ScalingRule.FLOOR


def test_what_people_say_is_what_it_takes_to_have_more() -> None:
    """Their ceiling, not the specification's."""
    full = bounded(view(told={"queued": 3, "service_ms": 9e3}), said(max_containers=2))
    assert more_needs(function(ver_1=full), wish_of(full)) == "a higher max_containers: it is 2"


loads = st.integers(0, 200)


@st.composite
def seen_versions(draw: st.DrawFn) -> VersionView:
    slots = draw(st.integers(1, 8))
    least = draw(st.integers(0, 3))
    most = draw(st.integers(max(1, least), 40))
    states = draw(st.lists(st.tuples(st.integers(0, slots), st.floats(0, 500)), max_size=8))
    there = tuple(
        container(f"c{n}", running=running, idle_s=0.0 if running else idle_s, slots=slots)
        for n, (running, idle_s) in enumerate(states)
    )
    told = {
        "queued": draw(loads), "running": draw(loads), "service_ms": draw(st.floats(0, 1e5)),
        "refused_calls": draw(loads), "late": draw(loads), "backlog": draw(loads),
    }  # fmt: skip
    options: dict[str, Any] = {"max_inputs": slots, "min_containers": least, "max_containers": most}
    return view(*there, told=told, buffer_containers=draw(st.integers(0, 2)), **options)


@given(seen_versions())
def test_it_is_never_below_the_floor_nor_above_the_ceiling(seen: VersionView) -> None:
    """Whatever is called, and whatever the past foretells."""
    for memory in (FunctionMemory(60.0, AT), busy(7, minutes=40)):
        count = desired(function(ver_1=seen), memory, AT).by_version["ver_1"]
        assert seen.floor <= count <= seen.spec.max_containers


@given(seen_versions(), st.sampled_from(("queued", "refused_calls", "late", "backlog")), loads)
def test_more_demand_never_wants_less(seen: VersionView, what: str, more: int) -> None:
    """Of any kind."""
    assert seen.demand is not None
    told = replace_told(seen.demand, **{what: getattr(seen.demand, what) + more})
    assert wish_of(replace(seen, demand=told)).count >= wish_of(seen).count


@given(seen_versions())
def test_the_same_is_wished_for_the_same(seen: VersionView) -> None:
    """Asking changes nothing."""
    memory = busy(3, minutes=40)
    first = desired(function(ver_1=seen), memory, AT)
    assert desired(function(ver_1=seen), memory, AT) == first


@given(seen_versions())
def test_nothing_is_taken_away_on_stale_news(seen: VersionView) -> None:
    """A home that is silent holds what is there."""
    assert wish_of(replace(seen, demand=None, home_is_silent=True)).holds


@given(seen_versions(), st.floats(-1e6, 1e6))
def test_a_clock_that_is_set_holds_nothing_for_long(seen: VersionView, step_s: float) -> None:
    """Back or ahead, by a moment or by days: the floor and the ceiling are kept, and a start cools off in its time."""
    memory = FunctionMemory(60.0, AT)
    memory.on_up(AT)
    memory.advance(AT + step_s)
    set_at = AT + step_s

    wish = desired(function(ver_1=seen), memory, set_at)
    later = desired(function(ver_1=seen), memory, max(AT, set_at) + COOLDOWN_S)

    assert seen.floor <= wish.by_version["ver_1"] <= seen.spec.max_containers
    assert not later.holds


def lately(needed: int) -> FunctionMemory:
    """A function whose calls have needed so many containers a minute ago."""
    memory = FunctionMemory(60.0, AT - 2 * MINUTE_S)
    memory.observe(needed, AT - MINUTE_S)
    return memory


def side(arm: Arm, part: float, *containers: Any, deployed: bool = False, surge: int | None = None) -> VersionView:
    """A side of a rollout that has these containers."""
    seen = view(*containers, deployed=deployed, max_containers=20)
    return replace(seen, arm=ArmCapacity(arm, part, surge))


def test_sides_of_a_rollout_have_containers_before_calls_need_them() -> None:
    """Of a function whose calls have needed eight: the old version keeps eight, the others what the next step needs."""
    seen = function(
        v1=side(Arm.CONTROL, 1.0, deployed=True),
        v2=side(Arm.CANARY, 0.25),
        v3=side(Arm.TWIN, 0.25),
    )
    memory = lately(8)
    wish = desired(seen, memory, AT)
    assert wish.by_version == {"v1": 8, "v2": 2, "v3": 2}
    assert (wish.rule, wish.because) == (
        ScalingRule.ROLLOUT, "a rollout runs, and the old version keeps the 8 that carry all calls",
    )  # fmt: skip
    assert {purpose_of(each, wish, 0) for each in seen.versions.values()} == {Purpose.PREWARM}


def test_what_a_rollout_keeps_beyond_calls_is_bounded_by_its_surge() -> None:
    sides = {"v1": side(Arm.CONTROL, 1.0, deployed=True), "v2": side(Arm.CANARY, 1.0, surge=1)}
    assert desired(function(**sides), lately(8), AT).by_version == {"v1": 8, "v2": 1}


def test_the_old_version_is_not_shrunk_before_the_new_one_has_proven_itself() -> None:
    """Its containers idle while the canary has the traffic; without the rollout they would go."""
    there = [container(f"c{number}", idle_s=900.0) for number in range(8)]
    kept = side(Arm.CONTROL, 1.0, *there, deployed=True)
    memory = lately(8)
    canary = replace(side(Arm.CANARY, 0.95), demand=demand(running=8))
    assert desired(function(v1=kept, v2=canary), memory, AT).by_version["v1"] == 8
    assert desired(function(v1=replace(kept, arm=None), v2=canary), memory, AT).by_version["v1"] == 0


def test_a_rollout_of_a_function_that_nobody_calls_keeps_nothing() -> None:
    sides = {"v1": side(Arm.CONTROL, 1.0, deployed=True), "v2": side(Arm.CANARY, 0.5)}
    assert desired(function(**sides), FunctionMemory(60.0, AT), AT).by_version == {"v1": 0, "v2": 0}


def test_a_rollout_without_money_keeps_nothing_without_calls() -> None:
    sides = {"v1": side(Arm.CONTROL, 1.0, deployed=True), "v2": side(Arm.CANARY, 0.5)}
    poor = {name: replace(each, unfunded="the budget is used up") for name, each in sides.items()}
    assert desired(function(**poor), lately(8), AT).by_version == {"v1": 0, "v2": 0}
