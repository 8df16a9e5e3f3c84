"""How many containers a version should have, and which may go."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as replace_told

from pilotlight_autoscaler.policy.desired import purpose_of
from pilotlight_autoscaler.policy.scaling_policy import (
    FIRST_LOAD_S,
    VersionSpeed,
    VersionView,
    load_s,
    may_give_way,
    to_drain,
    wanted_by_level,
)
from pilotlight_core.model.api.curve_api import TARGET_UTILISATION
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.scaling.scale_bounds import AS_DEPLOYED, ScaleBounds
from pilotlight_core.model.scaling.scale_record import BOUNDS
from tests.autoscaler.builders import demand, wanted, wish_of
from tests.builders.nodes import container
from tests.builders.specs import function_spec


def view(*containers: Any, queued: int = 0, running: int = 0, service_ms: float = 0.0, **options: Any) -> VersionView:
    asked = demand(queued=queued, running=running, service_ms=service_ms) if queued or running else None
    return VersionView(spec=function_spec(**options), deployed=True, demand=asked, containers=containers)


def drained(seen: VersionView) -> list[str]:
    return [each.id for each in to_drain(seen, wanted(seen))]


def purpose(seen: VersionView, started: int) -> Purpose:
    return purpose_of(seen, wish_of(seen), started)


def test_nothing_runs_while_nobody_calls() -> None:
    """No demand, no floor: zero."""
    assert wanted(view()) == 0


def test_a_container_is_for_calls_first_then_for_the_floor() -> None:
    """What is beyond both is headroom."""
    assert [purpose(view(queued=1, min_containers=3, buffer_containers=2), n) for n in range(3)] == [
        Purpose.CALL, Purpose.FLOOR, Purpose.FLOOR,
    ]  # fmt: skip
    assert [purpose(view(queued=1, buffer_containers=1), n) for n in range(2)] == [Purpose.CALL, Purpose.BUFFER]
    assert purpose(view(container(), min_containers=2), 0) is Purpose.FLOOR


def bounds(**more: Any) -> ScaleBounds:
    """What people or warm windows say."""
    said: dict[str, Any] = {"least": 0, "most": 10, "buffer": 0, "window_s": 60.0, "steady": 0, "forecast": True} | more
    said = {"zero_window_s": said["window_s"]} | said
    return ScaleBounds(**said, because=dict.fromkeys(BOUNDS, AS_DEPLOYED), changes_at=math.inf)


def test_bounds_go_before_the_specification() -> None:
    """The floor, the ceiling, the buffer and the window."""
    idle, busy = container("c1", idle_s=30.0), container("c2", running=1)
    there = view(idle, busy, running=1, min_containers=1, buffer_containers=1)
    assert wanted(there) == 2
    assert wanted(replace(there, bounds=bounds())) == 1
    assert wanted(replace(there, bounds=bounds(least=4))) == 4
    assert wanted(replace(there, bounds=bounds(buffer=3))) == 4
    assert wanted(replace(there, bounds=bounds(most=2, buffer=3))) == 2
    assert drained(replace(there, bounds=bounds())) == []
    assert drained(replace(there, bounds=bounds(window_s=30.0))) == ["c1"]
    assert may_give_way(replace(there, bounds=bounds(least=2))) == []


def test_bounds_do_not_keep_what_is_superseded_or_shut_down() -> None:
    """Nor more than the tenant's limit allows."""
    kept = replace(view(), bounds=bounds(least=4))
    assert wanted(replace(kept, deployed=False)) == 0
    assert wanted(replace(kept, is_shut_down=True)) == 0
    assert wanted(replace(kept, floor_most=3)) == 3


def test_what_a_warm_window_adds_to_the_floor_says_so() -> None:
    """After what is there at any time; what calls need is for calls."""
    warm = replace(view(queued=1), bounds=bounds(least=3, steady=2, buffer=1))
    assert [purpose(warm, n) for n in range(4)] == [Purpose.CALL, Purpose.FLOOR, Purpose.WARM, Purpose.BUFFER]
    assert purpose(replace(warm, floor_most=1), 1) is Purpose.BUFFER


@given(
    least=st.integers(0, 12), most=st.integers(1, 12), limit=st.none() | st.integers(0, 12), buffer=st.integers(0, 5),
    queued=st.integers(0, 40), running=st.integers(0, 8),
)  # fmt: skip
def test_never_below_the_floor_nor_above_the_ceiling(
    least: int, most: int, limit: int | None, buffer: int, queued: int, running: int
) -> None:
    """Inside the tenant's limit, whatever the demand."""
    busy = [container(f"c{n}", running=1) for n in range(running)]
    asked = view(*busy, queued=queued, running=running, service_ms=1_000.0)
    held = replace(asked, bounds=bounds(least=min(least, most), most=most, buffer=buffer), floor_most=limit)
    floor = min(least, most, most if limit is None else limit)
    assert floor <= wanted(held) <= most


def test_a_first_burst_gets_a_container_for_each_call_that_a_start_would_outlast() -> None:
    """Nobody knows yet how long a call takes: as long as a start, which takes a second or as long as it has taken."""
    assert wanted(view(queued=1, max_containers=300)) == 1
    assert wanted(view(queued=200, max_containers=300)) == 200
    assert wanted(view(queued=200, max_inputs=64, max_containers=300)) == 4
    assert wanted(view(queued=200, max_inputs=300)) == 1


@pytest.mark.parametrize(("age_s", "seconds"), [(0.1, FIRST_LOAD_S), (20.0, 20.0)])
def test_a_first_start_takes_as_long_as_it_has_taken(age_s: float, seconds: float) -> None:
    """And a second at least."""
    assert load_s(view(container(state=ContainerState.LOADING, age_s=age_s))) == seconds
    assert load_s(view()) == FIRST_LOAD_S


def test_a_new_home_starts_no_crowd_beside_what_is_there() -> None:
    """It does not know yet how long calls take, but ten containers that are ready will tell it in no time."""
    there = [container(f"c{n}", running=4) for n in range(10)]
    assert wanted(view(*there, queued=60, running=40, max_inputs=4, max_containers=100)) == 13 + 1


def test_what_has_run_for_long_says_how_long_calls_take() -> None:
    """At least; once a call has ended, that one tells."""
    quick = container(running=1, timeline={"load": 10.0})
    unknown = view(quick, queued=20, running=1, max_containers=50)
    assert unknown.demand is not None
    assert wanted(unknown) == 1 + 1
    assert wanted(replace(unknown, demand=replace_told(unknown.demand, oldest_run_ms=60_000.0))) == 1 + 20
    assert wanted(replace(unknown, demand=replace_told(unknown.demand, oldest_run_ms=6e4, service_ms=10.0))) == 1 + 1


def test_calls_that_were_turned_away_or_late_are_demand() -> None:
    """Admission keeps a queue short however many come: at fifty times what is served, what it refuses tells."""
    short = view(container(running=1), queued=2, running=1, service_ms=100.0, max_containers=100)
    assert short.demand is not None
    assert wanted(short) == 2
    assert wanted(replace(short, demand=replace_told(short.demand, refused_calls=110, late=10))) == 1 + 49


def test_calls_that_were_refused_for_lack_of_a_container_get_one() -> None:
    """It counts as one call that waits, whatever its time and however many there were, within the ceiling."""
    refused = VersionView(
        spec=function_spec(), deployed=True, demand=demand(refused=True, arrivals=500, service_ms=900.0), containers=()
    )
    assert wanted(refused) == 1
    assert wanted(replace(refused, containers=(container(state=ContainerState.LOADING),))) == 1
    assert may_give_way(replace(refused, containers=(container(idle_s=50.0),))) == []


def test_the_last_container_stays_for_a_window_of_its_own() -> None:
    """Only the step to zero has it: of several all but the one that was called last go as ever."""

    def left(*idle_s: float, **options: Any) -> list[str]:
        there = [container(f"c{number}", idle_s=each) for number, each in enumerate(idle_s)]
        return drained(view(*there, scaledown_window=60.0, **options))

    assert left(70.0, 80.0) == ["c1", "c0"]
    assert left(70.0, 80.0, zero_window=300.0) == ["c1"]
    assert left(70.0, zero_window=300.0) == []
    assert left(310.0, zero_window=300.0) == ["c0"]
    assert left(70.0, 10.0, zero_window=300.0) == ["c0"]


def test_a_queue_is_sized_to_drain_within_the_wait_target() -> None:
    """64 calls of 10 ms are 640 ms of work: three containers drain it in 250 ms."""
    assert wanted(view(queued=64, service_ms=10.0)) == 3


def test_long_calls_get_one_slot_each_but_no_more() -> None:
    """Five calls of 20 s cannot use more than five containers."""
    assert wanted(view(queued=5, service_ms=20_000.0)) == 5
    assert wanted(view(queued=5, service_ms=20_000.0, max_containers=3)) == 3


def test_the_floor_and_the_buffer_are_kept() -> None:
    """min_containers always, buffer_containers while there is traffic."""
    assert wanted(view(min_containers=2)) == 2
    assert wanted(view(container(running=1), running=1, buffer_containers=2)) == 3


def test_one_caller_after_another_needs_one_container() -> None:
    """A running call asks for nothing more; a container nearly full of them does."""
    assert wanted(view(container(running=1), running=1)) == 1
    assert wanted(view(container(running=51), running=51, max_inputs=64)) == 1
    assert wanted(view(container(running=53), running=53, max_inputs=64)) == 2


def test_a_call_that_has_just_left_the_queue_counts_once() -> None:
    """The node's report shows it running before the home's next demand."""
    assert wanted(view(container(running=1), queued=1, service_ms=600.0)) == 1
    assert wanted(view(container(running=1), queued=2, service_ms=600.0)) == 2
    assert wanted(view(container(running=1), running=1, queued=1, service_ms=600.0)) == 2


def test_a_call_whose_container_is_gone_asks_for_no_other() -> None:
    """The home has not heard of its end; what runs in a container that drains still runs, and others will come."""
    gone = view(running=1)
    assert wanted(gone) == 0
    assert wanted(replace(gone, leaving=1)) == 1
    assert wanted(replace(gone, demand=demand(running=3), leaving=1, spec=function_spec(max_inputs=2))) == 1
    assert wanted(replace(gone, pending=1)) == 1


def test_only_what_was_idle_for_the_whole_window_goes() -> None:
    """The window is per container, and the longest idle go first."""
    containers = (container("c1", idle_s=59.0), container("c2", idle_s=61.0), container("c3", idle_s=80.0))

    assert drained(view(*containers)) == ["c3", "c2"]


def test_nothing_goes_while_the_home_is_silent() -> None:
    """It may have calls, or another home will take them up."""
    containers = tuple(container(f"c{n}", idle_s=100.0) for n in range(3))

    assert len(drained(view(*containers))) == 3
    assert drained(replace(view(*containers), home_is_silent=True)) == []


def test_none_goes_that_has_been_ready_for_less_time_than_it_took_to_start() -> None:
    """Else a slow start would be paid for again and again; a superseded version's go even so."""
    slow: dict[str, Any] = {"scaledown_window": 1.0}
    young, old = (container(age_s=age_s, idle_s=2.0, timeline={"load": 30_000.0}) for age_s in (59.0, 60.0))

    assert drained(view(young, **slow)) == []
    assert drained(view(old, **slow)) == [old.id]
    assert drained(replace(view(young, **slow), deployed=False)) == [young.id]


def test_a_load_longer_than_the_window_is_not_reaped() -> None:
    """A container that is still loading is never idle, whatever its age."""
    loading = container(state=ContainerState.LOADING, idle_s=1000.0)

    assert drained(view(loading, scaledown_window=1.0)) == []
    assert may_give_way(view(loading)) == []


def test_a_start_under_way_counts_as_a_container() -> None:
    """A slow start is not answered by more starts."""
    starting = view(container(state=ContainerState.LOADING), queued=5, service_ms=10.0)

    assert wanted(starting) - starting.size == 0
    burst = view(*(container(f"c{n}", state=ContainerState.LOADING, age_s=30.0) for n in range(5)), queued=5)
    assert wanted(burst) - burst.size == 0


def test_a_superseded_version_goes_when_idle_whatever_its_floor() -> None:
    """min_containers is a promise of the deployed version only."""
    old = VersionView(
        spec=function_spec(min_containers=2), deployed=False, demand=None, containers=(container(idle_s=2.0),)
    )

    assert len(drained(old)) == 1


def test_busy_containers_never_give_way() -> None:
    """Only idle ones beyond the floor do."""
    assert may_give_way(view(container(running=1), running=1)) == []
    assert may_give_way(view(container(idle_s=5.0), min_containers=1)) == []
    assert len(may_give_way(view(container(idle_s=5.0)))) == 1


def carrying(rate: float, *there: float, best: float = 100.0) -> VersionView:
    containers = tuple(container(f"c{n}", running=1) for n in range(len(there)))
    return replace(
        view(*containers, running=1, max_containers=50), rate=rate, speed=VersionSpeed(there=there, next=best)
    )


@pytest.mark.parametrize(
    ("rate", "there", "count"),
    [
        (0.0, (), 0),
        (80.0, (), 1),
        (81.0, (), 2),
        (80.0, (100.0,), 1),
        (200.0, (100.0,), 3),
        (80.0, (0.0, 0.0), 3),
        (80.0, (50.0, 100.0, 100.0), 1),
        (120.0, (50.0, 100.0, 100.0), 2),
    ],
)
def test_a_service_level_gets_the_containers_that_carry_the_calls(
    rate: float, there: tuple[float, ...], count: int
) -> None:
    """At 80 % of what they do within it; one that is too slow for it carries nothing."""
    assert wanted_by_level(carrying(rate, *there)) == count


def test_without_a_known_curve_or_level_only_demand_counts() -> None:
    """And the ceiling binds in any case."""
    assert wanted_by_level(replace(carrying(800.0), speed=None)) == 0
    assert wanted(replace(view(container(running=1), running=1), rate=800.0)) == 1
    assert wanted(carrying(1e9)) == 50


@given(
    st.floats(0, 1e5),
    st.lists(st.sampled_from((0.0, 3.0, 40.0, 500.0)), max_size=8),
    st.sampled_from((3.0, 40.0, 500.0)),
)
def test_what_is_wanted_carries_the_calls_and_one_less_does_not(rate: float, there: list[float], best: float) -> None:
    """Of the fastest of those that are there first, then of new ones."""
    count = wanted_by_level(carrying(rate, *there, best=best))

    fastest = [*sorted(there, reverse=True), *[best] * max(0, count - len(there))]
    needed = rate / TARGET_UTILISATION
    assert sum(fastest[:count]) >= needed * (1 - 1e-9)
    if count > len(there):
        assert sum(fastest[: count - 1]) < needed or math.isclose(sum(fastest[: count - 1]), needed)
    elif count:
        assert sum(fastest[: count - 1]) < needed
