"""The cheapest plan, by integer programming: `pip install 'pilotlight[planner]'` installs the solver (OR-tools, SCIP).

Variables count instances by function and kind, and devices by type and full layout; each profile has at least as many
places as instances. Counting layouts instead of devices keeps the program small and free of symmetry (cutting stock;
with several types and prices as in Mélange, Griggs et al. 2024, arXiv 2404.14527).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pilotlight_placement.capacity_planner.capacity_plan import (
    CannotPlan,
    CapacityPlan,
    FunctionDemand,
    InstanceChoice,
    InstanceGroup,
    PlannedDevice,
    PlanningTerms,
)
from pilotlight_placement.capacity_planner.mig_layouts import InstancePiece, counts_of, fill_in, full_cuts
from pilotlight_placement.hardware.catalogue import Device
from pilotlight_placement.hardware.geometry import Layout

SECONDS = 10.0
"""After this time the best plan so far is returned; its bound says how good it is."""


def is_installed() -> bool:
    return find_spec("ortools") is not None


@dataclass(frozen=True, kw_only=True)
class LayoutVariable:
    """One full layout of a type of device, and the variable that counts its devices."""

    device: Device
    layout: Layout
    variable: Any


@dataclass(frozen=True, kw_only=True)
class InstanceVariable:
    """Instances of one kind for one function, and the variable that counts them."""

    demand: FunctionDemand
    choice: InstanceChoice
    variable: Any


def plan_exactly(demands: Sequence[FunctionDemand], terms: PlanningTerms, seconds: float = SECONDS) -> CapacityPlan:
    """The cheapest plan found within `seconds`, with the best bound proven by then.

    Raises:
        CannotPlan: if no plan is found in that time.
    """
    # Imported late, as it takes a quarter of a second; by name, as it is an extra that type checkers may not find.
    model_builder: Any = import_module("ortools.linear_solver.python.model_builder")
    model = model_builder.Model()
    runs, cuts = _variables(model, demands)
    _cover(model, demands, runs)
    _place(model, runs, cuts)
    prices = {choice.device.name: choice.price for demand in demands for choice in demand.choices}
    terms_of_price = [prices[cut.device.name] * cut.variable for cut in cuts]
    terms_of_price += [(run.choice.devices * run.choice.price) * run.variable for run in runs if run.choice.is_whole]
    model.minimize(sum(terms_of_price))
    solver = model_builder.Solver("SCIP")
    solver.set_time_limit_in_seconds(seconds)
    status = solver.solve(model)
    if status not in (model_builder.SolveStatus.OPTIMAL, model_builder.SolveStatus.FEASIBLE):
        raise CannotPlan(f"no plan was found within {seconds:g} s")
    return _read(solver, demands, runs, cuts, terms)


def _variables(model: Any, demands: Sequence[FunctionDemand]) -> tuple[list[InstanceVariable], list[LayoutVariable]]:
    runs = [
        InstanceVariable(
            demand=demand, choice=choice, variable=model.new_int_var(0, _most(demand, choice), f"n{number}_{index}")
        )
        for number, demand in enumerate(demands)
        for index, choice in enumerate(demand.choices)
    ]
    sliced: dict[str, tuple[Device, set[str]]] = {}
    for run in runs:
        if not run.choice.is_whole:
            sliced.setdefault(run.choice.device.name, (run.choice.device, set()))[1].add(run.choice.slice)
    most = sum(_most(run.demand, run.choice) for run in runs)
    cuts = [
        LayoutVariable(device=device, layout=layout, variable=model.new_int_var(0, most, f"x{name}_{index}"))
        for name, (device, keys) in sorted(sliced.items())
        if device.family is not None
        for index, layout in enumerate(full_cuts(device.family, tuple(sorted(keys))))
    ]
    return runs, cuts


def _most(demand: FunctionDemand, choice: InstanceChoice) -> int:
    return max(demand.need.least, int(demand.capacity / choice.point.throughput) + 1)


def _cover(model: Any, demands: Sequence[FunctionDemand], runs: Sequence[InstanceVariable]) -> None:
    for demand in demands:
        mine = [run for run in runs if run.demand is demand]
        # In units of the demand itself, so that tolerances mean the same for all.
        model.add(sum((run.choice.point.throughput / demand.capacity) * run.variable for run in mine) >= 1.0)
        if demand.need.least > 1:
            model.add(sum(run.variable for run in mine) >= demand.need.least)


def _place(model: Any, runs: Sequence[InstanceVariable], cuts: Sequence[LayoutVariable]) -> None:
    for name, key in sorted({(r.choice.device.name, r.choice.slice) for r in runs if not r.choice.is_whole}):
        asked = sum(r.variable for r in runs if (r.choice.device.name, r.choice.slice) == (name, key))
        places = [(counts_of(cut.layout)[key], cut.variable) for cut in cuts if cut.device.name == name]
        model.add(sum(count * variable for count, variable in places if count) >= asked)


def _read(
    solver: Any,
    demands: Sequence[FunctionDemand],
    runs: Sequence[InstanceVariable],
    cuts: Sequence[LayoutVariable],
    terms: PlanningTerms,
) -> CapacityPlan:
    groups: list[InstanceGroup] = []
    for demand in demands:
        counted = [(run.choice, round(solver.value(run.variable))) for run in runs if run.demand is demand]
        groups += trimmed(demand, counted)
    cuttings: list[PlannedDevice] = []
    for device in {cut.device.name: cut.device for cut in cuts}.values():
        mine = [(cut.layout, round(solver.value(cut.variable))) for cut in cuts if cut.device is device]
        layouts = [layout for layout, count in mine for _ in range(count)]
        cuttings += fill_in(device, layouts, pieces_on(device, groups).elements())
    return CapacityPlan(
        demands=tuple(demands),
        groups=tuple(groups),
        cuttings=tuple(cuttings),
        bound=solver.best_objective_bound,
        method="ilp",
        terms=terms,
    )


def trimmed(demand: FunctionDemand, counted: Iterable[tuple[InstanceChoice, int]]) -> list[InstanceGroup]:
    """A demand's instances without superfluous ones, costliest first; the solver may add superfluous ones for free."""
    kept = {choice: count for choice, count in counted if count}
    for choice in sorted(kept, key=lambda choice: (-choice.cost, choice.point.throughput)):
        throughput = sum(c.point.throughput * count for c, count in kept.items())
        spare = int((throughput - demand.capacity) / choice.point.throughput)
        many = sum(kept.values()) - demand.need.least
        kept[choice] -= max(0, min(spare, many, kept[choice]))
    name = demand.need.function
    return [InstanceGroup(function=name, choice=choice, count=count) for choice, count in kept.items() if count]


def pieces_on(device: Device, groups: Sequence[InstanceGroup]) -> Counter[InstancePiece]:
    found: Counter[InstancePiece] = Counter()
    for group in groups:
        if not group.choice.is_whole and group.choice.device.name == device.name:
            found[(group.choice.slice, group.function)] += group.count
    return found
