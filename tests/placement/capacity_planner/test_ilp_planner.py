"""The exact planner against the greedy one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_placement.asks.curves import Curves, ThroughputPoint
from pilotlight_placement.capacity_planner.capacity_plan import (
    FunctionNeed,
    PlanningTerms,
    demands_of,
)
from pilotlight_placement.capacity_planner.greedy_planner import fraction_bound, plan_greedily
from pilotlight_placement.capacity_planner.ilp_planner import plan_exactly
from pilotlight_placement.hardware.catalogue import standard
from tests.example_counts import SLOW, examples

A100 = "A100-80GB"


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[FunctionNeed], dict[str, Curves]]:
    """A few functions with measured slices of two types."""
    known, needs = {}, []
    for number in range(draw(st.integers(1, 5))):
        points = {}
        for device in draw(st.lists(st.sampled_from(("A30", A100, "T4")), min_size=1, unique=True)):
            keys = ["whole", *(cut.profile.key for cut in standard()[device].cuts if not cut.profile.media)]
            for key in draw(st.lists(st.sampled_from(keys), min_size=1, unique=True)):
                speed = draw(st.floats(5, 500))
                points[device, key] = (ThroughputPoint(batch=1, throughput=speed, p95_ms=1),)
        known[f"f{number}"] = Curves(points)
        least = draw(st.integers(0, 3))
        needs.append(FunctionNeed(function=f"f{number}", rps=draw(st.floats(1, 1000)), least=least))
    return needs, known


@examples(25, fewer=SLOW)
@given(problems())
def test_plans_are_sound_and_the_bounds_are_bounds(problem: tuple[list[FunctionNeed], dict[str, Curves]]) -> None:
    """Each covers its demand on legal layouts; no plan undercuts the other's bound, and greedy is no cheaper."""
    needs, known = problem
    terms = PlanningTerms()
    demands = demands_of(needs, known, terms)

    greedy, exact = plan_greedily(demands, terms), plan_exactly(demands, terms, seconds=5)

    greedy.check_integrity()
    exact.check_integrity()
    assert fraction_bound(demands) <= exact.cost + 1e-6
    assert exact.bound <= greedy.cost + 1e-6
    if exact.is_optimal:
        assert exact.cost <= greedy.cost + 1e-6
