"""Idle containers go by and by."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.policy.scale_down_pace import STEP_EVERY_S, ScaleDownPace
from pilotlight_autoscaler.policy.scaling_policy import VersionView
from pilotlight_autoscaler.policy.wish import ScalingRule, Warmth, Wish
from pilotlight_core.model.messages.node_messages import ContainerReport
from tests.builders.nodes import container
from tests.builders.specs import function_spec


@pytest.mark.parametrize(("size", "room"), [(1, 1), (10, 1), (20, 3), (100, 15)])
def test_a_step_is_a_small_part_and_one_at_least(size: int, room: int) -> None:
    """Of all that a version has."""
    assert ScaleDownPace().room("v", size, 0.0) == room


@pytest.mark.parametrize(("window_s", "next_s"), [(300.0, STEP_EVERY_S), (60.0, 60.0), (2.0, 2.0), (0.0, 0.0)])
def test_the_next_step_is_a_minute_later_or_the_window(window_s: float, next_s: float) -> None:
    """Which a version may have shorter."""
    pace = ScaleDownPace()
    pace.spend("v", 10, 1, window_s, 10.0)
    if next_s:
        assert pace.room("v", 10, 10.0 + next_s - 0.01) == 0
    assert pace.room("v", 10, 10.0 + next_s) == 1
    assert pace.room("other", 10, 10.0) == 1


def test_what_becomes_idle_later_in_a_minute_may_still_go_in_it() -> None:
    """As much as the minute allows of what there was when it began, however many went at first."""
    pace = ScaleDownPace()
    pace.spend("v", 40, 1, 60.0, 0.0)
    assert pace.room("v", 39, 1.0) == 5
    pace.spend("v", 39, 5, 60.0, 1.0)
    assert pace.room("v", 34, 59.9) == 0
    assert pace.room("v", 34, 60.0) == 5


def test_what_has_passed_is_forgotten() -> None:
    """So that versions that are gone take no room."""
    pace = ScaleDownPace()
    pace.spend("v", 10, 1, 60.0, 0.0)
    pace.forget(30.0)
    assert pace.room("v", 10, 30.0) == 0
    pace.forget(60.0)
    assert pace == ScaleDownPace()


def idle_ones(count: int) -> tuple[ContainerReport, ...]:
    return tuple(container(f"c{number}", idle_s=90.0, age_s=900.0) for number in range(count))


@pytest.mark.parametrize(
    ("deployed", "holds", "there", "gone"), [(True, False, 20, 3), (True, True, 20, 0), (False, True, 20, 20)]
)
def test_a_step_of_the_idle_ones_goes_unless_they_are_held(deployed: bool, holds: bool, there: int, gone: int) -> None:
    """Those of a superseded version at once; who leaves already is not counted twice."""
    pace = ScaleDownPace()
    spec = function_spec(max_containers=50)
    seen = VersionView(spec=spec, deployed=deployed, demand=None, containers=idle_ones(there))
    wish = Wish(
        count=0, tier=Warmth.NONE, rule=ScalingRule.NOBODY_CALLS, because="", look_again_at=0.0, by_version={"v": 0},
        holds=holds,
    )  # fmt: skip
    assert len(pace.leaving("v", seen, wish, 10.0)) == gone
    assert pace.next_at("v", 10.0) == (70.0 if gone == 3 else 10.0)
    assert not pace.leaving("v", seen, wish, 70.0, but={each.id for each in seen.containers})


@pytest.mark.parametrize(("unfunded", "holds", "gone"), [("the budget is used up", True, 19), ("", False, 3)])
def test_what_nobody_has_the_money_for_goes_at_once(unfunded: str, holds: bool, gone: int) -> None:
    """But what calls need stays, and what is busy."""
    spec = function_spec(max_containers=50, min_containers=20)
    seen = VersionView(spec=spec, deployed=True, demand=None, containers=idle_ones(20), unfunded=unfunded)
    assert seen.floor == (0 if unfunded else 20)
    wish = Wish(
        count=1, tier=Warmth.READY, rule=ScalingRule.CALLS, because="", look_again_at=0.0, by_version={"v": 1},
        holds=holds,
    )  # fmt: skip
    assert len(ScaleDownPace().leaving("v", seen, wish, 10.0)) == gone
