"""The greedy planner."""

from __future__ import annotations

from pilotlight_placement.asks.curves import Curves, ThroughputPoint
from pilotlight_placement.capacity_planner.capacity_plan import (
    CapacityPlan,
    FunctionNeed,
    PlanningTerms,
    demands_of,
)
from pilotlight_placement.capacity_planner.greedy_planner import plan_greedily

A100 = "A100-80GB"


def curves(**points: tuple[int, float]) -> Curves:
    """`curves(whole=(32, 75))`: batch and milliseconds by slice of an A100; "x3g" is 3g."""
    made = {
        (A100, key.lstrip("x").replace("_", ":")): (ThroughputPoint(batch=b, throughput=b / ms * 1000, p95_ms=ms),)
        for key, (b, ms) in points.items()
    }
    return Curves(made)


def solved(
    method: object, needs: list[FunctionNeed], known: dict[str, Curves], terms: PlanningTerms | None = None
) -> CapacityPlan:
    terms = terms or PlanningTerms()
    plan: CapacityPlan = method(demands_of(needs, known, terms), terms)  # type: ignore[operator]
    plan.check_integrity()
    return plan


def test_the_same_demand_gets_the_same_plan() -> None:
    """The greedy planner's dice are seeded."""
    known = {f"f{n}": curves(x1g=(1, 9 + n), x2g=(1, 5 + n), x3g=(1, 3 + n)) for n in range(6)}
    needs = [FunctionNeed(function=name, rps=300) for name in known]
    one, other = (solved(plan_greedily, needs, known) for _ in range(2))
    assert one.cuttings == other.cuttings
