"""The benchmark of scenarios: reads what was published, and believes no plan unchecked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.placement_parva import DEVICE, SLO_PART, check, read_curves, read_scenarios, solve
from pilotlight_core.model.devices import MigPlacement
from pilotlight_placement.capacity_planner.capacity_plan import CapacityPlan, FunctionDemand, PlanningTerms, demands_of
from pilotlight_placement.capacity_planner.greedy_planner import plan_greedily
from pilotlight_placement.capacity_planner.ilp_planner import plan_exactly

Method = Callable[[tuple[FunctionDemand, ...], PlanningTerms], CapacityPlan]
TERMS = PlanningTerms(utilisation=1.0, slo_part=SLO_PART, prices={DEVICE: 1.0})
HEAD = "Mig instance,Batch size,Workload Number,Throughput,Latency\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two models that scale with the size of the slice, and two scenarios."""
    for folder in ("prof_data", "SLO"):
        (tmp_path / folder).mkdir()
    sizes = (1, 2, 3, 4, 7)
    for model in ("alpha", "beta"):
        rows = [f"{size},8,{n},{100 * size / n},{0.02 * n}" for size in sizes for n in (1, 2, 4)]
        (tmp_path / "prof_data" / f"{model}.csv").write_text(HEAD + "\n".join([*rows, "7,32,1,0,0"]) + "\n")
    (tmp_path / "SLO" / "SLO_req_rate.csv").write_text("300,400\n650,N/A\n")
    (tmp_path / "SLO" / "SLO_latency.csv").write_text("100,100\n50,N/A\n")
    return tmp_path


def test_curves_count_all_processes_of_an_instance(data: Path) -> None:
    """Throughput is given for each process; what did not run is left out, and so are too many processes."""
    curves = read_curves(data / "prof_data", most_processes=3)["alpha"]
    best = curves.best(DEVICE, "7g")
    assert best is not None
    assert (best.throughput, best.batch, best.p95_ms) == (700, 8, 20)
    two = [curves.best(DEVICE, "1g", limit) for limit in (10, 20, 40)]
    assert [point and point.batch for point in two] == [None, 8, 8]


def test_scenarios_leave_out_absent_models(data: Path) -> None:
    """One line each, in order."""
    scenarios = dict(read_scenarios(data / "SLO", ["alpha", "beta"]))
    assert [len(scenarios[name]) for name in ("S1", "S2")] == [2, 1]
    assert scenarios["S2"][0].rps == 650


def test_lines_that_do_not_match_are_named(data: Path) -> None:
    """By line, and by model where it is one field."""
    with pytest.raises(SystemExit, match="line 1: 3 columns"):
        list(read_scenarios(data / "SLO", ["a", "b", "c"]))
    (data / "SLO" / "SLO_latency.csv").write_text("100,soon\n50,N/A\n")
    with pytest.raises(SystemExit, match="line 1, beta: 'soon' is no number"):
        list(read_scenarios(data / "SLO", ["alpha", "beta"]))


def test_a_rate_of_nothing_is_no_need_and_one_below_is_refused(data: Path) -> None:
    """In scenarios of one's own."""
    (data / "SLO" / "SLO_req_rate.csv").write_text("\ufeff0,400\n0,N/A\n", encoding="utf-8")
    assert [[need.function for need in needs] for _, needs in read_scenarios(data / "SLO", ["alpha", "beta"])] == [
        ["beta"],
        [],
    ]
    for wrong in ("-1", "nan", "inf"):
        (data / "SLO" / "SLO_req_rate.csv").write_text(f"{wrong},400\n650,N/A\n")
        with pytest.raises(SystemExit, match="line 1, alpha"):
            list(read_scenarios(data / "SLO", ["alpha", "beta"]))


@pytest.mark.parametrize("method", [plan_greedily, plan_exactly])
def test_both_methods_find_the_least(data: Path, method: Method) -> None:
    """3g and 4g on one device; 7g alone."""
    curves = read_curves(data / "prof_data", 3)
    found = []
    for _, needs in read_scenarios(data / "SLO", ["alpha", "beta"]):
        plan, _ = solve(method, demands_of(needs, curves, TERMS))
        found.append(plan.gpus[DEVICE])
    assert found == [1, 1]


def test_the_check_finds_what_the_driver_would_refuse(data: Path) -> None:
    """An illegal start, an overlap, too little throughput."""
    needs = next(iter(read_scenarios(data / "SLO", ["alpha", "beta"])))[1]
    demands = demands_of(needs, read_curves(data / "prof_data", 3), TERMS)
    plan = plan_greedily(demands, TERMS)
    check(plan, demands)
    card = plan.cuttings[0]

    def with_layout(*places: tuple[int, str]) -> CapacityPlan:
        layout = tuple(MigPlacement(start=start, profile=key) for start, key in places)
        return replace(plan, cuttings=(replace(card, layout=layout, functions=("alpha",) * len(layout)),))

    with pytest.raises(AssertionError, match="no legal start"):
        check(with_layout((2, "3g")), demands)
    with pytest.raises(AssertionError, match="overlaps"):
        check(with_layout((4, "3g"), (6, "1g")), demands)
    with pytest.raises(AssertionError, match="beta"):
        check(with_layout((0, "7g")), demands)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("prof_data/alpha.csv", HEAD + "1,8,1,fast,0.02\n", "line 2: not a measurement"),
        ("prof_data/alpha.csv", "Mig instance,Batch size\n1,8\n", "line 2: not a measurement"),
        ("SLO/SLO_latency.csv", "100,100\n", "2 lines of rates, 1 of latencies"),
        ("SLO/SLO_req_rate.csv", "300,many\n650,N/A\n", "'many' is no number"),
        ("SLO/SLO_req_rate.csv", None, "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_named(data: Path, name: str, text: str | None, said: str) -> None:
    """By file and line, in one sentence."""
    if text is None:
        (data / name).unlink()
    else:
        (data / name).write_text(text)

    with pytest.raises(SystemExit, match=said):
        list(read_scenarios(data / "SLO", sorted(read_curves(data / "prof_data", most_processes=3))))
