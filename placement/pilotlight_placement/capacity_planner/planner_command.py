"""The command `pilotlight plan`: GPUs by type for a demand.

The demand is a CSV file (see `demand_csv`); the answer is a table, or JSON for programs.
"""

# ruff: noqa: T201 - it is a command; printing is what it does

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.price_book import load_prices
from pilotlight_placement.capacity_planner.capacity_plan import (
    SLO_PART,
    TOLERANCE,
    UTILISATION,
    CannotPlan,
    CapacityPlan,
    FunctionDemand,
    InstanceGroup,
    PlanningTerms,
    demands_of,
)
from pilotlight_placement.capacity_planner.demand_csv import (
    BadTable,
    curves_of,
    read_curves,
    read_demand,
    read_prices,
)
from pilotlight_placement.capacity_planner.greedy_planner import plan_greedily
from pilotlight_placement.capacity_planner.ilp_planner import SECONDS, is_installed, plan_exactly

AUTO, GREEDY, EXACT = "auto", "greedy", "ilp"


def main(words: Sequence[str] | None = None) -> int:
    """Read, plan, print; 1 with a sentence if something cannot be read or planned."""
    options = _options(words)
    try:
        plan = make_plan(options)
    except (BadInput, BadTable, CannotPlan, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(as_json(plan)))
    else:
        print("\n".join(as_text(plan)))
    return 0


def make_plan(options: argparse.Namespace) -> CapacityPlan:
    """The plan for the options.

    Raises:
        BadTable: if a file cannot be read.
        BadInput: if the price file is wrong.
        CannotPlan: if no measured slice serves the demand.
    """
    needs, measured = read_demand(options.demand)
    tables = [measured, *(read_curves(path) for path in options.curves)]
    prices = read_prices(options.prices) if options.prices else None
    book = load_prices(options.price_file)
    book.refresh(time.time())
    terms = PlanningTerms(utilisation=options.utilisation, slo_part=options.slo_part, prices=prices, book=book)
    demands = demands_of(needs, curves_of(*tables), terms)
    plan = _planned(demands, terms, options)
    plan.check_integrity()
    return plan


def _planned(demands: Sequence[FunctionDemand], terms: PlanningTerms, options: argparse.Namespace) -> CapacityPlan:
    if options.solver == GREEDY or (options.solver == AUTO and not is_installed()):
        return plan_greedily(demands, terms)
    if not is_installed():
        raise CannotPlan("--solver ilp needs OR-tools: pip install 'pilotlight[planner]'")
    if options.solver == EXACT:
        return plan_exactly(demands, terms, options.seconds)
    return cheaper(plan_greedily(demands, terms), _within(demands, terms, options.seconds))


def _within(demands: Sequence[FunctionDemand], terms: PlanningTerms, seconds: float) -> CapacityPlan | None:
    try:
        return plan_exactly(demands, terms, seconds)
    except CannotPlan:
        return None  # no plan in that time: keep the greedy one


def cheaper(greedy: CapacityPlan, exact: CapacityPlan | None) -> CapacityPlan:
    """The cheaper plan with the better bound: a solver that ran out of time may have found a worse plan."""
    if exact is None:
        return greedy
    best = exact if exact.cost <= greedy.cost * (1 + TOLERANCE) else greedy
    return replace(best, bound=max(greedy.bound, exact.bound))


def as_text(plan: CapacityPlan) -> list[str]:
    lines = []
    for demand in plan.demands:
        mine = [group for group in plan.groups if group.function == demand.need.function]
        lines += [arithmetic(demand, mine, plan.terms), *(f"    {describe(demand, group)}" for group in mine)]
    lines.append("")
    lines += [f"{count} x {name}" for name, count in plan.gpus.items()]
    for cutting, times in _alike(plan):
        lines.append(f"    {times} x {cutting}")
    lines.append(f"${plan.cost:,.2f} per hour; {quality(plan)}")
    return lines


def arithmetic(demand: FunctionDemand, groups: Sequence[InstanceGroup], terms: PlanningTerms) -> str:
    """The computation of a function's instances, to be checked by hand."""
    need, part = demand.need, f"{terms.utilisation:.0%}"
    if len(groups) == 1:
        speed = groups[0].choice.point.throughput
        exact = need.rps / (speed * terms.utilisation)
        return (
            f"{need.function}: {need.rps:,.6g} per second / ({speed:,.4g} per second x {part}) = {exact:.2f}"
            f" -> {groups[0].count}"
        )
    speed = sum(group.throughput for group in groups)
    return f"{need.function}: {need.rps:,.6g} per second of {speed:,.4g} x {part} = {speed * terms.utilisation:,.4g}"


def describe(demand: FunctionDemand, group: InstanceGroup) -> str:
    point, level = group.choice.point, demand.need.slo_ms
    within = f" of {level:g} ms" if level is not None else ""
    return (
        f"{group.count} x {group.choice.device.name} {group.choice.slice}: batch {point.batch} in "
        f"{point.p95_ms:g} ms{within}, {point.throughput:,.4g} per second each"
    )


def quality(plan: CapacityPlan) -> str:
    if plan.is_optimal:
        return "no plan is cheaper (proven)"
    said = f"no plan costs less than ${plan.bound:,.2f}"
    return said if plan.method == EXACT else f"{said}; found without a solver (pip install 'pilotlight[planner]')"


def _alike(plan: CapacityPlan) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for cutting in plan.cuttings:
        held = ", ".join(f"{at} {function}" for at, function in zip(cutting.layout, cutting.functions, strict=True))
        counts[f"{cutting.device.name}: {held}"] = counts.get(f"{cutting.device.name}: {held}", 0) + 1
    return sorted(counts.items())


def as_json(plan: CapacityPlan) -> dict[str, Any]:
    return {
        "gpus": plan.gpus,
        "dollars_per_hour": round(plan.cost, 6),
        "bound": round(plan.bound, 6),
        "optimal": plan.is_optimal,
        "method": plan.method,
        "utilisation": plan.terms.utilisation,
        "instances": [
            {
                "function": group.function,
                "gpu": group.choice.device.name,
                "slice": group.choice.slice,
                "count": group.count,
                "batch": group.choice.point.batch,
                "latency_ms": group.choice.point.p95_ms,
                "throughput": round(group.choice.point.throughput, 6),
            }
            for group in plan.groups
        ],
        "layouts": [
            {
                "gpu": cutting.device.name,
                "slices": [
                    {"profile": at.profile, "start": at.start, "function": function}
                    for at, function in zip(cutting.layout, cutting.functions, strict=True)
                ],
            }
            for cutting in plan.cuttings
        ],
    }


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pilotlight plan", description="GPUs by type for a demand")
    parser.add_argument("--demand", type=Path, required=True, help="CSV: function, rps, slo_ms, measured points")
    more = "CSV of more points: function, gpu, slice, batch, latency_ms; may be repeated"
    parser.add_argument("--curves", type=Path, action="append", default=[], help=more)
    parser.add_argument("--prices", type=Path, help="CSV: gpu, price in dollars per hour; default: the price book's")
    parser.add_argument(
        "--price-file", type=Path, help="TOML: a price file as gateways have it, over the standard book"
    )
    parser.add_argument("--utilisation", type=_part, default=UTILISATION, help="planned part of throughput (0.7)")
    parser.add_argument("--slo-part", type=_part, default=SLO_PART, help="part of slo_ms for one batch (0.5)")
    parser.add_argument("--solver", choices=(AUTO, GREEDY, EXACT), default=AUTO, help="ilp needs OR-tools")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time for the integer program")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args(words)


def _part(text: str) -> float:
    try:
        part = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        part = math.nan
    if not (math.isfinite(part) and 0 < part <= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part of a whole: expected such as 70% or 0.7")
    return part


if __name__ == "__main__":
    sys.exit(main())
