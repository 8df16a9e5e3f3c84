"""How many A100s six models' service levels need, cut by MIG: greedy and integer program against the proven optimum.

Measured curves of eleven models on one A100-80GB (five MIG sizes, batch sizes, up to five processes in an instance) and
scenarios of rates and service levels are those that ParvaGPU published (Lee et al., SC 2024; github.com/MunQ-Lee/
ParvaGPU_SC24): `prof_data/MODEL.csv`, `SLO/SLO_req_rate.csv` and `SLO/SLO_latency.csv`, a line for each scenario and
a column for each model in alphabetical order. Their rule: a batch takes less than 0.45 of the service level, and the
throughputs of a model's instances sum to its rate at least.

Each plan is checked against the driver's rules, written down here anew: legal starts, no overlap, seven compute slices,
enough throughput within the level. Figures: `SCENARIO.greedy`, `SCENARIO.ilp` (GPUs), `SCENARIO.bound`.
"""

from __future__ import annotations

import csv
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.report import arguments, finish, table
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
from pilotlight_placement.capacity_planner.ilp_planner import is_installed, plan_exactly

DEVICE = "A100-80GB"
SLICES = {"1": "1g", "2": "2g", "3": "3g", "4": "4g", "7": "7g"}
MOST_PROCESSES = 3
SLO_PART = 0.45
BELOW = 1 - 1e-9
"""The rule is "less than", the planner's "at most"."""
ABSENT = ("N/A", "")
RULES = {
    "1g": (1, 1, range(7)),
    "2g": (2, 2, (0, 2, 4)),
    "3g": (4, 3, (0, 4)),
    "4g": (4, 4, (0,)),
    "7g": (8, 7, (0,)),
}
"""NVML's on a GPU with seven slices: memory slices, compute slices, legal starts."""


def read_curves(folder: Path, most_processes: int) -> dict[str, Curves]:
    """The curves of each model by name.

    Raises:
        SystemExit: naming file and line of what cannot be read.
    """
    found = {path.stem: Curves(_points(path, most_processes)) for path in sorted(folder.glob("*.csv"))}
    if not found:
        raise SystemExit(f"error: {folder} holds no MODEL.csv")
    return found


def _points(path: Path, most_processes: int) -> Mapping[tuple[str, str], tuple[ThroughputPoint, ...]]:
    found: dict[tuple[str, str], tuple[ThroughputPoint, ...]] = {}
    with path.open(newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                measured = _measured(row, most_processes)
            except (KeyError, TypeError, ValueError) as error:
                raise SystemExit(f"error: {path}, line {line}: not a measurement: {error}") from None
            if measured is not None:
                key, point = measured
                found[key] = (*found.get(key, ()), point)
    return found


def _measured(row: Mapping[str, str], most_processes: int) -> tuple[tuple[str, str], ThroughputPoint] | None:
    processes, speed = int(row["Workload Number"]), float(row["Throughput"])
    latency = float(row["Latency"]) * 1000
    if processes > most_processes or not speed or not latency:
        return None
    # Processes in one instance each work on their own batch: together they are one larger one.
    point = ThroughputPoint(batch=int(row["Batch size"]) * processes, throughput=speed * processes, p95_ms=latency)
    return (DEVICE, SLICES[row["Mig instance"]]), point


def read_scenarios(folder: Path, models: list[str]) -> Iterator[tuple[str, list[FunctionNeed]]]:
    """The scenarios in the order of their lines: name and needs. A rate of 0 is no need.

    Raises:
        SystemExit: naming line and column of what cannot be read.
    """
    rates, levels = (_lines(folder / name) for name in ("SLO_req_rate.csv", "SLO_latency.csv"))
    if len(rates) != len(levels):
        raise SystemExit(f"{folder}: {len(rates)} lines of rates, {len(levels)} of latencies")
    for number, (rate, level) in enumerate(zip(rates, levels, strict=True), 1):
        if len(rate) != len(models) or len(level) != len(models):
            raise SystemExit(f"{folder}, line {number}: {len(models)} columns are expected, one for each model")
        needs = [
            FunctionNeed(
                function=model, rps=_number(r, folder, number, model), slo_ms=_number(s, folder, number, model)
            )
            for model, r, s in zip(models, rate, level, strict=True)
            if r.strip() not in ABSENT and s.strip() not in ABSENT and _number(r, folder, number, model)
        ]
        yield f"S{number}", needs


def _lines(path: Path) -> list[list[str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"error: {path} cannot be read: {error}") from None
    return [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]


def _number(text: str, folder: Path, line: int, model: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise SystemExit(f"{folder}, line {line}, {model}: {text!r} is no number") from None
    if not 0 <= number < math.inf:
        raise SystemExit(f"{folder}, line {line}, {model}: {text!r} is no rate and no latency")
    return number


def check(plan: CapacityPlan, demands: tuple[FunctionDemand, ...]) -> None:
    """See that a plan is valid, by rules of its own.

    Raises:
        AssertionError: saying what is not.
    """
    throughput = dict.fromkeys((demand.need.function for demand in demands), 0.0)
    points = {(demand.need.function, choice.slice): choice.point for demand in demands for choice in demand.choices}
    for cutting in plan.cuttings:
        taken: set[int] = set()
        compute = 0
        for instance, function in zip(cutting.layout, cutting.functions, strict=True):
            size, parts, starts = RULES[instance.profile]
            places = set(range(instance.start, instance.start + size))
            assert instance.start in starts, f"{instance}: no legal start"
            assert not taken & places, f"{instance}: overlaps in {cutting.layout}"
            taken |= places
            compute += parts
            throughput[function] += points[function, instance.profile].throughput
        assert compute <= 7, f"{cutting.layout}: {compute} compute slices"
    for demand in demands:
        need = demand.need
        assert throughput[need.function] >= need.rps * (1 - 1e-6), f"{need.function}: {throughput} for {need.rps}"
        assert all(c.point.p95_ms < SLO_PART * (need.slo_ms or math.inf) for c in demand.choices)


def solve(
    method: Callable[[tuple[FunctionDemand, ...], PlanningTerms], CapacityPlan], demands: tuple[FunctionDemand, ...]
) -> tuple[CapacityPlan, float]:
    """A checked plan, and the milliseconds that it took."""
    terms = PlanningTerms(utilisation=1.0, slo_part=SLO_PART, prices={DEVICE: 1.0})
    start = time.perf_counter()
    plan = method(demands, terms)
    took = (time.perf_counter() - start) * 1000
    plan.check_integrity()
    check(plan, demands)
    return plan, took


def main() -> None:
    """Plan every scenario both ways."""
    parser = arguments("placement_parva", "GPUs per scenario of ParvaGPU, greedy and by integer programming")
    parser.add_argument("--data", type=Path, default=os.environ.get("PILOTLIGHT_PARVA_DATA"), help="published data")
    parser.add_argument("--processes", type=int, default=MOST_PROCESSES, help="most processes in an instance")
    options = parser.parse_args()
    if options.data is None or not (Path(options.data) / "SLO").is_dir():
        sys.exit("error: --data DIR (or PILOTLIGHT_PARVA_DATA) must name a folder with prof_data/ and SLO/")
    data = Path(options.data)
    curves = read_curves(data / "prof_data", options.processes)
    figures: dict[str, float] = {}
    rows = []
    if not is_installed():
        print("OR-tools is not installed: no integer programs. pip install 'pilotlight[planner]'", file=sys.stderr)
    for name, needs in read_scenarios(data / "SLO", sorted(curves)):
        terms = PlanningTerms(utilisation=1.0, slo_part=SLO_PART * BELOW, prices={DEVICE: 1.0})
        try:
            demands = demands_of(needs, curves, terms)
        except CannotPlan as error:
            sys.exit(f"error: {name}: {error}")
        greedy, greedy_ms = solve(plan_greedily, demands)
        figures[f"{name}.greedy"] = greedy.gpus.get(DEVICE, 0)
        row: list[object] = [name, len(needs), figures[f"{name}.greedy"], f"{greedy_ms:.0f}"]
        if is_installed():
            exact, exact_ms = solve(plan_exactly, demands)
            figures[f"{name}.ilp"] = exact.gpus.get(DEVICE, 0)
            figures[f"{name}.bound"] = math.ceil(exact.bound - 1e-6)
            row += [figures[f"{name}.ilp"], f"{exact_ms:.0f}", figures[f"{name}.bound"]]
        rows.append(row + ["-"] * (7 - len(row)))
    table(
        f"{DEVICE}s per scenario, at most {options.processes} processes in an instance",
        ["scenario", "models", "greedy", "ms", "integer program", "ms", "proven bound"],
        rows,
    )
    finish("placement_parva", figures)


if __name__ == "__main__":
    main()
