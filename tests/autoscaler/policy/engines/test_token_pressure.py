"""Whether engines keep the pace that their version asks for, and how many containers it takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotlight_autoscaler.policy.desired import purpose_of
from pilotlight_autoscaler.policy.engines.token_pressure import pressure_of, wanted_by_pace
from pilotlight_autoscaler.policy.scaling_policy import VersionView
from pilotlight_autoscaler.policy.wish import ScalingRule
from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.spec import SLO
from tests.autoscaler.builders import demand, wanted, wish_of
from tests.builders.nodes import container
from tests.builders.specs import function_spec

LEVEL = SLO(ttft_ms=1000.0, itl_ms=50.0)


def engine(name: str, itl_ms: float | None, **more: Any) -> ContainerReport:
    """A container whose tokens come so fast; None: it has told nothing."""
    told = EngineReport(inter_token_ms=itl_ms) if itl_ms is not None else None
    return container(name, running=1, engine=told, **more)


def view(*itl_ms: float, slo: SLO = LEVEL, **more: Any) -> VersionView:
    there = [engine(f"c{number}", each) for number, each in enumerate(itl_ms)]
    spec = function_spec(slo=slo, max_inputs=16, max_containers=more.pop("max_containers", 10))
    fields: dict[str, Any] = {"deployed": True, "demand": demand(running=len(there)), "containers": there}
    return VersionView(spec=spec, **fields | more)


@pytest.mark.parametrize(
    ("told", "pressure"),
    [
        ({}, 0.0),
        ({"inter_token_ms": 25.0}, 0.5),
        ({"inter_token_ms": 60.0, "first_token_ms": 1500.0}, 1.5),
        ({"kv_used": 45, "kv_total": 100}, 0.5),
        ({"kv_used": 99, "kv_total": 100}, 1.1),
        ({"waiting": 3, "running": 1, "waited_ms": 2000.0, "kv_used": 72, "kv_total": 100}, 1.75),
        ({"waiting": 3, "running": 1, "waited_ms": 20.0, "kv_used": 72, "kv_total": 100}, 0.8),
        ({"waiting": 3, "running": 9, "waited_ms": 2000.0, "kv_used": 72, "kv_total": 100}, 0.8),
        ({"inter_token_ms": 1e9}, 2.0),
    ],
)
def test_the_pressure_is_that_of_what_is_tightest(told: dict[str, Any], pressure: float) -> None:
    """A call that waits for its turn alone, and not for room, is none."""
    assert pressure_of(LEVEL, EngineReport(**told)) == pytest.approx(pressure)


def test_only_what_is_asked_for_counts() -> None:
    slow = EngineReport(inter_token_ms=80.0, first_token_ms=100.0)

    assert pressure_of(SLO(ttft_ms=1000.0), slow) == pytest.approx(0.1)
    assert pressure_of(SLO(itl_ms=40.0), slow) == 2.0


def test_beyond_the_pace_there_are_more() -> None:
    """As many as its mean asks for, of those that serve: those that start are there already."""
    assert wanted(view(60.0)) == 2
    starting = engine("new", None, state=ContainerState.LOADING)
    assert wanted(view(60.0, containers=[engine("c0", 60.0), starting])) == 2
    assert wanted(view(60.0, 60.0, 60.0)) == 4
    assert wanted(view(1000.0, 1000.0)) == 4


def test_one_that_is_slow_beside_others_that_are_not_asks_for_none() -> None:
    assert wanted(view(1000.0, 10.0, 10.0)) == 3
    assert wanted(view(70.0, 0.0)) == 2  # the one that has just come


def test_one_without_calls_has_no_pressure_whatever_it_tells() -> None:
    """What it told was of calls that have ended."""
    rests = replace(engine("c0", 90.0), running=0)

    assert wanted_by_pace(LEVEL, [rests]) == 0
    assert wanted_by_pace(LEVEL, [rests, engine("c1", 90.0)]) == 2


def test_none_goes_that_the_pace_needs() -> None:
    """What is left would be at 80 % of it."""
    assert [wanted(view(*each)) for each in ((40.0, 40.0), (20.0, 20.0), (18.0, 18.0, 18.0))] == [2, 1, 2]


def test_the_rule_and_its_reason_are_told() -> None:
    wish = wish_of(view(70.0))

    assert wish.rule is ScalingRule.PACE
    assert wish.because == (
        "1 of 1 containers are beyond slo=, the pressure is 1.40 (TTFT is 0 of 1000 ms where it is longest, "
        "ITL is 70 of 50 ms where it is longest, rooms for keys and values are used to 0% at most)"
    )


def test_bounds_go_before_it() -> None:
    """The ceiling, a used-up budget, a version that was superseded, one that asks for no pace."""
    assert wish_of(view(90.0, 90.0, max_containers=3)).rule is ScalingRule.CEILING
    assert wanted(view(90.0, unfunded="the budget is used up")) == 1
    assert view(90.0, deployed=False).paced == 0
    assert view(90.0, slo=SLO()).paced == 0


def test_what_starts_for_it_is_for_calls() -> None:
    seen = view(70.0)
    assert purpose_of(seen, wish_of(seen), 0) is Purpose.CALL


@given(st.lists(st.one_of(st.none(), st.floats(min_value=0, max_value=1e12)), max_size=20))
def test_whatever_engines_tell_the_number_at_most_doubles(told: list[float | None]) -> None:
    there = [engine(f"c{number}", each) for number, each in enumerate(told)]

    assert 0 <= wanted_by_pace(LEVEL, there) <= 2 * len(there)
