"""Demand and prices as CSV: what is read, and how what cannot be read is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_placement.asks.curves import ThroughputPoint
from pilotlight_placement.capacity_planner.capacity_plan import FunctionNeed
from pilotlight_placement.capacity_planner.demand_csv import (
    BadTable,
    MeasuredPoint,
    curves_of,
    read_curves,
    read_demand,
    read_prices,
)


def written(folder: Path, *lines: str) -> Path:
    path = folder / "demand.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_function_with_its_points_in_several_rows(tmp_path: Path) -> None:
    """The rate stands once; a slice may have the driver's name; throughput follows from batch and latency."""
    path = written(
        tmp_path,
        "function, rps, slo_ms, gpu, slice, batch, latency_ms",
        "# a comment",
        "embed, 1000, 300, A100-80GB, , 32, 75",
        "embed, , , a100-80gb, 3g.40gb, 8, 40",
        "",
        "other, 2.5, , , , ,",
    )

    needs, measured = read_demand(path)

    assert needs == (FunctionNeed(function="embed", rps=1000, slo_ms=300), FunctionNeed(function="other", rps=2.5))
    assert measured["embed"] == [
        MeasuredPoint(
            device="A100-80GB", slice="whole", point=ThroughputPoint(batch=32, throughput=32 / 0.075, p95_ms=75)
        ),
        MeasuredPoint(device="A100-80GB", slice="3g", point=ThroughputPoint(batch=8, throughput=200, p95_ms=40)),
    ]
    assert curves_of(measured)["embed"].best("A100-80GB", "3g") == measured["embed"][1].point


def test_several_tables_add_up(tmp_path: Path) -> None:
    """Points of the demand file and of a file of curves count equally."""
    path = tmp_path / "curves.csv"
    path.write_text("function,gpu,batch,latency_ms,throughput\nf,T4,1,10,\nf,T4,4,20,150\n")
    measured = read_curves(path)
    best = curves_of(measured, {})["f"].best("T4", "whole")
    assert best == ThroughputPoint(batch=4, throughput=150, p95_ms=20)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["function"], "row 1, rps: is missing in the heading; needed are function, rps"),
        (["function,rps,cost", "f,1,2"], "row 1, cost: no such column; known are function"),
        (["function,rps,rps", "f,1,2"], "row 1, rps: stands twice in the heading"),
        (["function,rps"], "row 1: no row follows the heading"),
        (["function,rps", "f,fast"], "row 2, rps: 'fast' is not a number"),
        (["function,rps", "f,1_0"], "row 2, rps: '1_0' is not a number"),
        (["function,rps", "f,1", "g,0"], "row 3, rps: 0 is not a number above 0"),
        (["function,rps", "f,1", "", "g,nan"], "row 4, rps: nan is not a number above 0"),
        (["function,rps", ",1"], "row 2, function: is empty"),
        (["function,rps", "f,"], "row 2, rps: is empty"),
        (["function,rps", "f,1", "f,2"], "row 3, rps: f has other figures in a row above"),
        (["function,rps,least", "f,1,two"], "row 2, least: 'two' is not a whole number of at least 0"),
        (["function,rps", "f,1,3"], "row 2: 3 fields under 2 columns"),
        (["function,rps,gpu", "f,1,A100"], "row 2, gpu: A100 comes in several kinds: A100-40GB, A100-80GB"),
        (["function,rps,gpu", "f,1,K80"], "row 2, gpu: K80 is not known; known are A10, "),
        (["function,rps,gpu", "f,1,T4"], "row 2, batch: is empty"),
        (["function,rps,gpu,batch", "f,1,T4,8"], "row 2, latency_ms: is empty"),
        (["function,rps,batch", "f,1,8"], "row 2, gpu: is empty"),
        (
            ["function,rps,gpu,slice,batch,latency_ms", "f,1,T4,3g,8,9"],
            "row 2, slice: '3g' is no slice of T4: whole",
        ),
    ],
)
def test_what_cannot_be_read_is_named_by_row_and_field(tmp_path: Path, lines: list[str], said: str) -> None:
    """Rows are counted as an editor does."""
    path = written(tmp_path, *lines)
    with pytest.raises(BadTable) as caught:
        read_demand(path)
    assert str(caught.value).startswith(f"{path}, {said}")


def test_prices_are_read_once_for_each_gpu(tmp_path: Path) -> None:
    """A second price for the same GPU is refused."""
    path = written(tmp_path, "gpu,price", "T4,0.5", "H100-80GB,3.9")
    assert read_prices(path) == {"T4": 0.5, "H100-80GB": 3.9}
    path = written(tmp_path, "gpu,price", "T4,0.5", "t4,0.6")
    with pytest.raises(BadTable, match="row 3, gpu: T4 has a price in a row above"):
        read_prices(path)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    """Told without a row."""
    with pytest.raises(BadTable, match=r"nothing\.csv: No such file or directory"):
        read_demand(tmp_path / "nothing.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadTable, match="is not UTF-8 text"):
        read_demand(tmp_path / "b.csv")
