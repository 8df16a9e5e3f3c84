"""`pilotlight plan` from file to answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pilotlight_placement.asks.curves import Curves, ThroughputPoint
from pilotlight_placement.capacity_planner.capacity_plan import FunctionNeed, PlanningTerms, demands_of
from pilotlight_placement.capacity_planner.greedy_planner import plan_greedily
from pilotlight_placement.capacity_planner.planner_command import cheaper, main

EXAMPLE = "function,rps,slo_ms,gpu,batch,latency_ms\nclassify,1000,,A100-80GB,32,75\n"
TWO = (
    "function,rps,slo_ms,gpu,slice,batch,latency_ms\n"
    "a,100,100,A100-80GB,2g,8,40\n"
    "b,100,100,A100-80GB,3g,8,40\n"
    "c,1000,,T4,,8,40\n"
)


@pytest.fixture
def demand(tmp_path: Path) -> Path:
    path = tmp_path / "demand.csv"
    path.write_text(EXAMPLE)
    return path


@pytest.mark.parametrize("solver", ["auto", "greedy", "ilp"])
def test_the_worked_example_shows_its_arithmetic(demand: Path, capsys: pytest.CaptureFixture[str], solver: str) -> None:
    """1,000 / (426.7 x 70 %) = 3.35, so 4."""
    assert main(["--demand", str(demand), "--solver", solver]) == 0
    said = capsys.readouterr().out
    assert "classify: 1,000 per second / (426.7 per second x 70%) = 3.35 -> 4\n" in said
    assert "4 x A100-80GB\n" in said
    assert "$9.99 per hour" in said


def test_headroom_and_prices_are_options(demand: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At all of its throughput three GPUs do, at their price in the book."""
    prices = tmp_path / "prices.csv"
    prices.write_text("gpu,price\nA100-80GB,2\n")
    words = ["--demand", str(demand), "--prices", str(prices), "--utilisation", "100%", "--json"]

    assert main(words) == 0

    plan = json.loads(capsys.readouterr().out)
    assert plan["gpus"] == {"A100-80GB": 3}
    assert plan["dollars_per_hour"] == 6
    assert plan["optimal"] is True


def test_the_price_file_of_a_gateway_decides(demand: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its rates of now, and over them the prices of --prices."""
    book, prices = tmp_path / "prices.toml", tmp_path / "prices.csv"
    book.write_text(
        "[prices.a100]\nnano_usd_per_hour = 9_000_000_000\n"
        "[[prices.a100.later]]\nfrom = 2020-01-01\nnano_usd_per_hour = 1_500_000_000\n"
        "[[prices.a100.later]]\nfrom = 2100-01-01\nnano_usd_per_hour = 1\n"
    )
    prices.write_text("gpu,price\nA100-80GB,2\n")
    words = ["--demand", str(demand), "--price-file", str(book), "--json"]

    said = []
    for more in ([], ["--prices", str(prices)]):
        assert main([*words, *more]) == 0
        said.append(json.loads(capsys.readouterr().out)["dollars_per_hour"])
    assert said == [6.0, 8.0]

    book.write_text("[prices.a100]\nnano_usd_per_hour = -1\n")
    assert main(words) == 1
    assert f"error: {book}: prices.a100 needs nano_usd_per_hour" in capsys.readouterr().err


def test_a_price_that_an_operator_sets_changes_what_is_bought(
    demand: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cheaper of two types is another one then."""
    demand.write_text(f"{EXAMPLE}classify,,,L40S,32,75\n")
    book, bought = tmp_path / "prices.toml", []
    for rate in (1_951_200_000, 3_000_000_000):
        book.write_text(f"[prices.l40s]\nnano_usd_per_hour = {rate}\n")
        assert main(["--demand", str(demand), "--price-file", str(book), "--json"]) == 0
        bought.append(json.loads(capsys.readouterr().out)["gpus"])
    assert bought == [{"L40S": 4}, {"A100-80GB": 4}]


def test_slices_are_shown_where_they_lie(demand: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each way to cut a device is a line, with its functions."""
    demand.write_text(TWO)
    assert main(["--demand", str(demand)]) == 0
    said = capsys.readouterr().out
    assert "1 x A100-80GB: 2g@" in said or "1 x A100-80GB: 3g@" in said
    assert "8 x T4 whole: batch 8 in 40 ms" in said


def test_what_cannot_be_planned_is_one_sentence_and_exit_code_1(
    demand: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback for a slip in a file."""
    demand.write_text(EXAMPLE.replace("32,75", "32,fast"))
    assert main(["--demand", str(demand)]) == 1
    assert capsys.readouterr().err == f"error: {demand}, row 2, latency_ms: 'fast' is not a number\n"
    demand.write_text(EXAMPLE.replace("1000,,", "1000,100,"))
    assert main(["--demand", str(demand)]) == 1
    assert "no batch takes at most 50% of its 100 ms service level" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["0", "1.5", "nan", "-10%", "much"])
def test_a_part_is_a_part(demand: Path, capsys: pytest.CaptureFixture[str], part: str) -> None:
    """Refused by the option's name."""
    with pytest.raises(SystemExit):
        main(["--demand", str(demand), f"--utilisation={part}"])
    assert f"--utilisation: {part!r} is not a part of a whole: expected such as 70% or 0.7" in capsys.readouterr().err


def test_auto_takes_the_cheaper_of_both_and_the_better_bound() -> None:
    """A solver that ran out of time may have found worse, and a greedy plan may be optimal by the solver's bound."""
    curves = {"f": Curves({("A100-80GB", "whole"): (ThroughputPoint(batch=8, throughput=100.0, p95_ms=40.0),)})}
    greedy = plan_greedily(
        demands_of([FunctionNeed(function="f", rps=100.0)], curves, PlanningTerms()), PlanningTerms()
    )
    exact = replace(greedy, method="ilp", bound=greedy.bound + 1.0)
    dear = replace(exact, terms=PlanningTerms(prices={"A100-80GB": 100.0}))

    assert cheaper(greedy, dear) == replace(greedy, bound=exact.bound)
    assert cheaper(greedy, exact) == exact
    assert cheaper(greedy, None) is greedy


def test_auto_without_time_for_the_solver_keeps_the_greedy_plan(
    demand: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some plan is better than none."""
    assert main(["--demand", str(demand), "--seconds", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gpus"] == {"A100-80GB": 4}
