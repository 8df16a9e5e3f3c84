"""The benchmark's options, its figures, and what it says about files that are not there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.openb.run import Run
from benchmarks.placement_openb import figures, parse
from tests.benchmarks.openb.makers import write


def made(policy: str, seed: int, allocated: float) -> Run:
    curve = np.full(131, allocated)
    return Run(trace="t", policy=policy, seed=seed, curve=curve, refused=0)


def test_differences_are_paired_by_seed() -> None:
    """A seed that only one of the two has run counts for neither."""
    runs = [made("fgd", 42, 95.0), made("fgd", 43, 94.0), made("ours", 42, 95.5), made("ours", 44, 99.0)]
    found = figures(runs)
    assert found["t.fgd"] == pytest.approx(94.5)
    assert found["t.ours"] == pytest.approx(97.25)
    assert found["t.ours_minus_fgd"] == found["ours_minus_fgd"] == pytest.approx(0.5)


def test_no_difference_without_both() -> None:
    """Only the policies that ran have figures."""
    assert figures([made("fgd", 42, 95.0)]) == {"t.fgd": 95.0}


def test_options(tmp_path: Path) -> None:
    """Lists between commas, or the option given twice; quick is the first seed."""
    write(tmp_path)
    options = parse(
        ["--data", str(tmp_path), "--trace", "a,b", "--trace", "c", "--seeds", "42,43", "--policy", "ours,fgd"]
    )
    assert options.trace == ["a", "b", "c"]
    assert options.seeds == (42, 43)
    assert options.policy == ("ours", "fgd")
    assert parse(["--data", str(tmp_path), "--quick"]).seeds == (42,)


@pytest.mark.parametrize(
    "words", [["--data", "/nowhere"], ["--policy", "best"], ["--seeds", "a"], ["--seeds", ","], ["--policy", ""], []]
)
def test_what_cannot_be_run_is_refused(tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A missing folder, an unknown policy, no seeds, a folder without traces."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit):
        parse(["--data", str(tmp_path / "empty"), *words])
    assert "placement_openb: error" in capsys.readouterr().err


def test_the_command_prints_figures_last(tmp_path: Path) -> None:
    """The whole command on a small trace: table, picture, and the JSON line."""
    write(tmp_path)
    picture = tmp_path / "x.png"
    command = [
        sys.executable,
        "-m",
        "benchmarks.placement_openb",
        "--data",
        str(tmp_path),
        "--quick",
        "--plot",
        str(picture),
    ]
    done = subprocess.run([*command, "--policy", "ours,fgd"], capture_output=True, text=True, check=True)
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["benchmark"] == "placement_openb"
    assert set(last["figures"]) == {
        "tiny.ours", "tiny.fgd", "tiny.ours_minus_fgd", "ours_minus_fgd", "tiny.lp_bound", "compiled"
    }  # fmt: skip
    assert last["figures"]["tiny.lp_bound"] >= last["figures"]["tiny.ours"]
    assert picture.exists()
