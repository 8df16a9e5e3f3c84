"""`pilotlight simulate` from files to answer."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from pilotlight_autoscaler.simulator.simulate_command import INTERRUPTED, main
from pilotlight_autoscaler.simulator.simulation import Simulation

CALLS = "function,at_s,duration_s\nclassify,0,2\nclassify,1,2\nclassify,40,2\nclassify,300,2\nembed,30,0.5\n"
GUIDE = Path(__file__).parents[3] / "docs" / "simulate.md"


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    trace = tmp_path / "calls.csv"
    trace.write_text(CALLS)
    return ["--trace", str(trace), "--fleet", "A100-80GB:4", "--load-s", "20"]


def figures(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, float]]:
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    return {name: each["figures"] for name, each in told["simulations"].items()}


def test_the_guides_example(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What the page shows is what is printed."""
    assert main([*words, "--vary", "forecast=0,1"]) == 0
    printed = capsys.readouterr().out
    page = GUIDE.read_text(encoding="utf-8")
    assert CALLS in page
    assert printed in page


def test_pictures_and_page_are_written(words: list[str], tmp_path: Path) -> None:
    """One timeline for each simulation."""
    assert (
        main([*words, "--vary", "load_s=1,30", "--plot", str(tmp_path / "p"), "--html", str(tmp_path / "r.html")]) == 0
    )
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == [
        "pareto.png",
        "timeline-1.png",
        "timeline-2.png",
    ]
    assert "calls.csv on A100-80GB:4" in (tmp_path / "r.html").read_text()


def test_what_if_prices_constants_and_functions_differ(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each option has its effect."""
    prices, functions = tmp_path / "prices.csv", tmp_path / "functions.csv"
    prices.write_text("gpu,price\nA100-80GB,36\n")
    functions.write_text("function,load_s\nclassify,1\nembed,1\n")

    base = figures(capsys, *words)["simulated"]
    dear = figures(capsys, *words, "--prices", str(prices))["simulated"]
    quick = figures(capsys, *words, "--functions", str(functions))["simulated"]
    cheap = figures(capsys, *words, "--set", "WORTH=1")["simulated"]
    plain, brisk = (
        figures(capsys, *words, "--forecast", "0", "--set", f"STEP_EVERY_S={seconds}")["simulated"]
        for seconds in (60, 1)
    )

    spent = sum(base[name] for name in ("busy_gpu_s", "loading_gpu_s", "idle_gpu_s"))
    assert dear["dollars"] == pytest.approx(spent * 0.01)
    assert quick["loading_gpu_s"] == 4.0
    assert base["idle_gpu_s"] > cheap["idle_gpu_s"] >= plain["idle_gpu_s"] > brisk["idle_gpu_s"]


def test_generated_traffic_and_counts_by_minute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For as many hours as are asked for; classes are told apart."""
    generated = ["--generate", "diurnal", "--generate", "bursty=2", "--count", "5", "--rate", "0.5", "--hours", "1"]
    first, other = (figures(capsys, *generated, "--fleet", "T4:20", "--seed", seed) for seed in "12")
    assert first["simulated"]["calls"] > 0
    assert first != other

    counts = tmp_path / "counts.csv"
    counts.write_text("function,minute,count,class\nf,0,3,batch\ng,1,2,interactive\n")
    assert main(["--trace", str(counts), "--fleet", "T4:2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["simulations"]["simulated"]
    assert {name: each["calls"] for name, each in told["classes"].items()} == {"batch": 3, "interactive": 2}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--fleet", "X:1"], "is no GPU that is known"),
        (["--set", "NOTHING=1"], "expected NAME=VALUE"),
        (["--set", "STEP_PART=x"], "STEP_PART: expected a number"),
        (["--vary", "slots=1,x"], "slots: expected a whole number"),
        (["--trace", "/no/such.csv"], "/no/such.csv: "),
    ],
)
def test_what_is_wrong_is_named(
    words: list[str], more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit code 1."""
    assert main([*words, *more]) == 1
    told = capsys.readouterr()
    assert told.err.startswith("error: ")
    assert said in told.err
    assert not told.out


def test_without_the_extra_nothing_is_simulated_for_a_picture(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named before the work."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert main([*words, "--html", str(tmp_path / "r.html")]) == 1
    assert "pip install 'pilotlight[plots]'" in capsys.readouterr().err


def test_an_interrupt_prints_what_there_is(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the exit code of an interrupt."""

    def run(self: Simulation, _: object) -> None:
        self.result.at = 90.0
        raise KeyboardInterrupt

    monkeypatch.setattr(Simulation, "run", run)
    assert main([*words, "--vary", "slots=1,2"]) == INTERRUPTED
    told = capsys.readouterr()
    assert "interrupted: slots=1 is as of 0.03 h" in told.err
    assert "cold starts, of all calls" in told.out


def test_memory_for_what_is_parked_is_of_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is compared as settings of functions are, and is no column of theirs; what is no memory is refused by name."""
    trace, functions = tmp_path / "calls.csv", tmp_path / "functions.csv"
    trace.write_text("function,at_s,duration_s\nf,0,2\nf,400,2\nf,800,2\n")
    words = ["--trace", str(trace), "--fleet", "CPU:4", "--gpu", "CPU", "--load-s", "5", "--forecast", "0"]
    found = figures(capsys, *words, "--vary", "warm_gib=0,8")
    assert [each["unparks"] for each in found.values()] == [0, 2]
    assert figures(capsys, *words, "--warm-gib", "8", "--memory-gib", "9")["simulated"]["unparks"] == 0

    functions.write_text("function,warm_gib\nf,8\n")
    assert main([*words, "--functions", str(functions)]) == 1
    assert "'warm_gib' is no column" in capsys.readouterr().err
    assert main([*words, "--vary", "warm_gib=-1"]) == 1
    assert "warm_gib: expected a number from 0" in capsys.readouterr().err
