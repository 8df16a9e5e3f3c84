"""Measuring a function through the whole platform: real calls, in a container of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.system.support.platform import Platform
from tests.waiting import wait_until

SOURCE = """\
import time

import pilotlight

app = pilotlight.App("profiled")


@app.gpu_function(memory="256MiB")
@pilotlight.batched(max_batch_size=4, wait_ms=200)
def slow(x: list[int]) -> list[int]:
    time.sleep(0.01 + 0.001 * len(x))
    return [0 for _ in x]
"""

TRIFLE = """\
import pilotlight

app = pilotlight.App("trifle")


@app.gpu_function(memory="256MiB")
def echo(x: int) -> int:
    return x
"""


def test_a_function_is_measured_kept_and_gone_by(platform: Platform, tmp_path: Path) -> None:
    """Each batch size on the CPU slot; the figures are the function's own; the container goes by itself."""
    (tmp_path / "app.py").write_text(SOURCE)
    platform.deploy(tmp_path / "app.py")

    done = platform.cli("profile", "profiled.slow", "x=3", "--batch", "1,4", "--seconds", "0.1", "--json")

    assert "profiled.slow@v1 on a CPU slot" in done.stderr
    (curve,) = json.loads(done.stdout)["curves"]
    assert (curve["gpu"], curve["slice"], curve["source"]) == ("CPU", "slot", "measured")
    one, four = curve["points"]
    assert (one["batch"], four["batch"]) == (1, 4)
    assert one["p50_ms"] >= 11.0
    assert four["p50_ms"] >= 14.0
    assert four["throughput"] > one["throughput"]
    assert min(one["samples"], four["samples"]) >= 3
    plan = platform.cli("placement", "plan", "profiled.slow").stdout
    assert "on a CPU slot: " in plan
    assert "(measured, " in plan
    wait_until(lambda: not platform.containers("profiled"), "the container that was measured is gone")
    assert platform.output("profiled.slow", x=3) == 0
    explained = platform.cli("placement", "explain", "profiled.slow").stdout
    assert "There it does, as far as is known, " in explained
    platform.cli("app", "stop", "profiled")


def test_what_is_measured_is_what_callers_get(platform: Platform, tmp_path: Path) -> None:
    """Of a function of a microsecond the platform's own time is most: as many answers come back, and no more."""
    (tmp_path / "app.py").write_text(TRIFLE)
    platform.deploy(tmp_path / "app.py")

    done = platform.cli("profile", "trifle.echo", "x=3", "--seconds", "1", "--json")

    (point,) = json.loads(done.stdout)["curves"][0]["points"]
    calls = int(done.stderr.splitlines()[-1].split()[0])
    assert point["throughput"] <= calls
    assert point["p50_ms"] < 1.0
    plan = json.loads(platform.cli("placement", "plan", "trifle.echo", "--rps", "1000", "--json").stdout)
    assert "per second" in json.dumps(plan)
    platform.cli("app", "stop", "trifle")


def test_what_a_function_does_in_use_is_learnt(platform: Platform, tmp_path: Path) -> None:
    """By ordinary calls, from some dozens on; nobody has measured anything."""
    (tmp_path / "app.py").write_text(SOURCE.replace("profiled", "learnt").replace("wait_ms=200", "wait_ms=0"))
    platform.deploy(tmp_path / "app.py")
    for _ in range(35):
        assert platform.output("learnt.slow", x=3) == 0

    wait_until(
        lambda: platform.http.get("/v1/functions/learnt.slow/curves").json()["curves"],
        "the controller keeps what it has learnt",
    )
    (curve,) = json.loads(platform.cli("profile", "learnt.slow", "--show", "--json").stdout)["curves"]
    assert (curve["gpu"], curve["slice"], curve["source"]) == ("CPU", "slot", "learnt")
    platform.cli("app", "stop", "learnt")


def test_an_interrupt_keeps_what_was_measured_and_leaves_no_container(platform: Platform, tmp_path: Path) -> None:
    """In the middle of the second batch size: exit code 130, the first one is kept, the container goes by itself."""
    (tmp_path / "app.py").write_text(SOURCE.replace("profiled", "broken_off").replace("wait_ms=200", "wait_ms=0"))
    platform.deploy(tmp_path / "app.py")
    words = ["profile", "broken_off.slow", "x=3", "--batch", "1,4", "--seconds", "2"]
    command = [sys.executable, "-m", "pilotlight.cli.main", *words]
    with subprocess.Popen(command, env=platform.env, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        told = next(line for line in running.stderr if "batch 1:" in line)
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read()
        assert running.wait(20) == 130

    assert "per second" in told
    assert "kept with broken_off.slow@v1" in rest
    shown = json.loads(platform.cli("profile", "broken_off.slow", "--show", "--json").stdout)["curves"]
    assert [point["batch"] for curve in shown for point in curve["points"] if curve["source"] == "measured"] == [1]
    wait_until(lambda: not platform.containers("broken_off"), "the container that was measured is gone")
    platform.cli("app", "stop", "broken_off")
