"""The capacity planner: GPUs by type for a demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pilotlight_core.model.devices import MigPlacement
from pilotlight_placement.asks.curves import Curves, ThroughputPoint
from pilotlight_placement.capacity_planner.capacity_plan import (
    CannotPlan,
    CapacityPlan,
    FunctionDemand,
    FunctionNeed,
    PlanningTerms,
    demands_of,
)
from pilotlight_placement.capacity_planner.greedy_planner import plan_greedily
from pilotlight_placement.capacity_planner.ilp_planner import plan_exactly

A100 = "A100-80GB"
Method = Callable[[tuple[FunctionDemand, ...], PlanningTerms], CapacityPlan]
METHODS = [pytest.param(plan_greedily, id="greedy"), pytest.param(plan_exactly, id="ilp")]


def curves(**points: tuple[int, float]) -> Curves:
    """`curves(whole=(32, 75))`: batch and milliseconds by slice of an A100; "x3g" is 3g."""
    made = {
        (A100, key.lstrip("x").replace("_", ":")): (ThroughputPoint(batch=b, throughput=b / ms * 1000, p95_ms=ms),)
        for key, (b, ms) in points.items()
    }
    return Curves(made)


def solved(
    method: Method, needs: list[FunctionNeed], known: dict[str, Curves], terms: PlanningTerms | None = None
) -> CapacityPlan:
    terms = terms or PlanningTerms()
    plan = method(demands_of(needs, known, terms), terms)
    plan.check_integrity()
    return plan


@pytest.mark.parametrize("method", METHODS)
def test_the_worked_example(method: Method) -> None:
    """1,000 per second at batch 32 in 75 ms is 426 per second and GPU, of which 70 % are planned: 4 GPUs."""
    plan = solved(method, [FunctionNeed(function="f", rps=1000)], {"f": curves(whole=(32, 75))})

    assert plan.gpus == {A100: 4}
    assert plan.groups[0].choice.point.throughput == pytest.approx(426.67, abs=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_headroom_is_the_part_of_throughput_that_is_planned(method: Method) -> None:
    """At 100 % three GPUs do."""
    plan = solved(
        method, [FunctionNeed(function="f", rps=1000)], {"f": curves(whole=(32, 75))}, PlanningTerms(utilisation=1.0)
    )
    assert plan.gpus == {A100: 3}


@pytest.mark.parametrize("method", METHODS)
def test_slices_of_several_functions_share_a_device(method: Method) -> None:
    """Three functions that need 3g, 2g and 2g fit on one A100, laid out as its driver allows."""
    known = {"a": curves(x3g=(8, 10)), "b": curves(x2g=(8, 10)), "c": curves(x2g=(8, 10))}
    plan = solved(method, [FunctionNeed(function=name, rps=500) for name in known], known)

    assert plan.gpus == {A100: 1}
    assert sorted(plan.cuttings[0].functions) == ["a", "b", "c"]


@pytest.mark.parametrize("method", METHODS)
def test_the_cheaper_type_wins_and_prices_may_change_that(method: Method) -> None:
    """Melange's example in small: the same work on a T4 or on an A100, by what they cost."""
    points = {("T4", "whole"): (ThroughputPoint(batch=1, throughput=100, p95_ms=5),)}
    points |= {(A100, "whole"): (ThroughputPoint(batch=1, throughput=1000, p95_ms=5),)}
    needs = [FunctionNeed(function="f", rps=70)]

    assert solved(method, needs, {"f": Curves(points)}).gpus == {"T4": 1}
    dear = PlanningTerms(prices={"T4": 9.0})
    assert solved(method, needs, {"f": Curves(points)}, dear).gpus == {A100: 1}


@pytest.mark.parametrize("method", METHODS)
def test_several_whole_devices_for_one_instance_are_counted(method: Method) -> None:
    """A model on four GPUs that is wanted twice takes eight."""
    plan = solved(method, [FunctionNeed(function="f", rps=1, least=2)], {"f": curves(whole_4=(1, 100))})
    assert plan.gpus == {A100: 8}


@pytest.mark.parametrize("method", METHODS)
def test_the_service_level_bounds_the_batch(method: Method) -> None:
    """A call may wait for the batch before its own, so a batch takes half of the level at most."""
    points = tuple(ThroughputPoint(batch=b, throughput=b * 10.0, p95_ms=float(b)) for b in (10, 20, 40, 80))
    known = {"f": Curves({(A100, "whole"): points})}

    plan = solved(method, [FunctionNeed(function="f", rps=100, slo_ms=81)], known)

    assert plan.groups[0].choice.point.batch == 40


def test_a_level_that_nothing_keeps_is_refused_with_the_reason() -> None:
    """It names the function, where it was measured, and the level."""
    with pytest.raises(CannotPlan, match=r"f: measured on A100-80GB, but no batch takes at most 50% of its 20 ms"):
        demands_of([FunctionNeed(function="f", rps=1, slo_ms=20)], {"f": curves(whole=(1, 11))}, PlanningTerms())
    with pytest.raises(CannotPlan, match="g: nothing says how fast it is on any GPU"):
        demands_of([FunctionNeed(function="g", rps=1)], {}, PlanningTerms())


@pytest.mark.parametrize(("rps", "least"), [(0.0, 1), (-1.0, 1), (float("nan"), 1), (1.0, -1)])
def test_a_need_is_born_valid(rps: float, least: int) -> None:
    """No rate of nothing, no count below nothing."""
    with pytest.raises(ValueError, match="f: a rate is more than 0"):
        FunctionNeed(function="f", rps=rps, least=least)


def test_terms_are_born_valid() -> None:
    """Parts are parts."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        PlanningTerms(utilisation=1.1)


def test_integrity_tells_what_is_wrong_with_a_plan() -> None:
    """Too little throughput, an instance that lies nowhere, one that lies over another."""
    plan = solved(plan_greedily, [FunctionNeed(function="f", rps=500)], {"f": curves(x3g=(8, 10))})
    group, cutting = plan.groups[0], plan.cuttings[0]

    with pytest.raises(ValueError, match="does not cover 500"):
        replace(plan, groups=(), cuttings=()).check_integrity()
    with pytest.raises(ValueError, match=r"1 slices .* 0 laid out"):
        replace(plan, groups=(replace(group, count=1),), cuttings=()).check_integrity()
    twice = replace(cutting, layout=(MigPlacement(start=4, profile="3g"),) * 2, functions=("f", "f"))
    with pytest.raises(ValueError, match="overlaps"):
        replace(plan, cuttings=(twice,)).check_integrity()
