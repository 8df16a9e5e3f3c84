"""`pilotlight plan`: a process of its own, whose words and exit code are passed on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def plan(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pilotlight.cli.main", "plan", *words], capture_output=True, text=True, check=False
    )


def test_the_worked_example(tmp_path: Path) -> None:
    """From the demand's file to four GPUs."""
    demand = tmp_path / "demand.csv"
    demand.write_text("function,rps,slo_ms,gpu,batch,latency_ms\nclassify,1000,,A100-80GB,32,75\n")

    done = plan("--demand", str(demand), "--solver", "greedy")

    assert done.returncode == 0
    assert "4 x A100-80GB\n" in done.stdout


def test_a_slip_in_the_file_is_told_and_the_exit_code_is_1(tmp_path: Path) -> None:
    """By row and field, on stderr."""
    demand = tmp_path / "demand.csv"
    demand.write_text("function,rps\nclassify,many\n")

    done = plan("--demand", str(demand))

    assert done.returncode == 1
    assert done.stderr == f"error: {demand}, row 2, rps: 'many' is not a number\n"
