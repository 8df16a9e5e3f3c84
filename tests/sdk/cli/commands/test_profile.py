"""`pilotlight profile`: measure, keep, show."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from pilotlight.cli.commands.profile import ProfileRun
from pilotlight.cli.main import app
from pilotlight_core.model.api.curve_api import Curve, FunctionCurves
from tests.sdk.scripted import Answer, Request, ScriptedPlatform, answer, chunk, event, problem, result, stream

POINT = {"batch": 2, "throughput": 250.0, "p50_ms": 8.0, "p95_ms": 8.0, "samples": 3, "at": 1.0}
KNOWN: dict[str, Any] = {
    "version": "shop.f@v3",
    "version_id": "ver_3",
    "curves": [
        {"gpu": "H100-80GB", "slice": "3g", "source": "measured", "points": [POINT], "software": True},
        {"gpu": "T4", "slice": "whole", "source": "declared", "points": [POINT | {"p50_ms": 0.0, "samples": 0}]},
    ],
    "slices": [
        {"gpu": "CPU", "slice": "slot", "what": "a CPU slot"},
        {"gpu": "H100-80GB", "slice": "3g", "what": "3g.40gb of H100-80GB", "software": True},
    ],
    "methods": [{"method": "", "most": 4, "batches": True}],
}


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["profile", "shop.f", *words])


@pytest.fixture
def measured(platform: ScriptedPlatform) -> ScriptedPlatform:
    """A platform whose calls run in batches of two, in 8 ms."""
    platform.will("GET", "/v1/functions/shop.f/curves", answer(KNOWN))
    platform.will("PUT", "/v1/functions/shop.f@v3/curves", answer(KNOWN))

    def trial(request: Request) -> Answer:
        ref = f"shop.f@ver_{request.json['slice']}"
        return answer({"ref": ref, "version_id": ref}, status=201)

    def call(_: Request) -> Answer:
        return stream(result(1, usage={"cost": "0.001", "batch_size": 2}))

    platform.does("POST", "/v1/functions/shop.f@v3/trials", trial)
    for cut in ("slot", "3g"):
        platform.does("POST", f"/v1/functions/shop.f@ver_{cut}/calls", call)
    return platform


def test_each_kind_of_slice_is_measured_and_kept(measured: ScriptedPlatform, tmp_path: Path) -> None:
    """Each batch size is measured by calls with the given arguments, and the summary has the cost."""
    (tmp_path / "input.json").write_text('{"x": 7}')

    done = run("--input", str(tmp_path / "input.json"), "--batch", "2", "--seconds", "0.1")

    assert done.exit_code == 0, done.stderr
    kept = [request.json for request in measured.asked("/v1/functions/shop.f@v3/curves")]
    assert [(each["gpu"], each["slice"]) for each in kept] == [("CPU", "slot"), ("H100-80GB", "3g")]
    (point,) = kept[0]["points"]
    assert 0 < point["throughput"] < 100_000
    calls = measured.asked("/v1/functions/shop.f@ver_3g/calls")
    assert len(calls) >= 7
    assert calls[0].call["input"] == {"x": 7}
    assert "shop.f@v3 on 3g.40gb of H100-80GB (a GPU in software" in done.stderr
    assert re.search(r"batch 2: [0-9,.]+ per second came back; on the slice p50 8.0 ms, p95 8.0 ms", done.stderr)
    assert f"{len(calls) + len(measured.asked('/v1/functions/shop.f@ver_slot/calls'))} calls, " in done.stderr
    assert done.stdout.splitlines()[1].split() == [
        "H100-80GB", "3g", "2", "250", "8.0", "ms", "8.0", "ms", "3", "measured,", "in", "software",
    ]  # fmt: skip


def test_the_pace_of_a_model_is_told(measured: ScriptedPlatform) -> None:
    """As a table before the curves, or among the JSON."""
    said = stream(chunk(0, {"token_ids": [1]}), chunk(1, {"token_ids": [2, 3]}), result(None, usage={"batch_size": 2}))
    measured.does("POST", "/v1/functions/shop.f@ver_slot/calls", lambda _: said)
    words = ("--batch", "2", "--slice", "slot", "--seconds", "0.1")

    done = run(*words)
    assert done.exit_code == 0, done.stderr
    assert "tokens per second; the first one p50 " in done.stderr
    table = done.stdout.splitlines()
    assert " ".join(table[0].split()) == "gpu slice batch tokens/s ttft p50 ttft p95 itl p50 itl p95"
    assert table[1].split()[:3] == ["CPU", "slot", "2"]
    assert table[2] == ""
    [told] = json.loads(run(*words, "--json").stdout)["paces"]
    assert (told["gpu"], told["slice"], told["pace"]["batch"]) == ("CPU", "slot", 2)
    assert told["pace"]["tokens_per_second"] > 0
    assert json.loads(run("--show", "--json").stdout)["paces"] == []


def test_a_batch_size_that_never_formed_is_not_kept(measured: ScriptedPlatform) -> None:
    """The output says so."""
    done = run("--batch", "4", "--slice", "slot", "--seconds", "0.1")

    assert done.exit_code == 0, done.stderr
    assert "calls ran in batches of 4; fewer than 3 batches say nothing, so it is not kept" in done.stderr
    assert not measured.asked("/v1/functions/shop.f@v3/curves")


def test_known_curves_are_shown_without_a_call(measured: ScriptedPlatform) -> None:
    """They are a table, or JSON."""
    shown = run("--show")
    profiled = json.loads(run("--show", "--json").stdout)

    assert shown.exit_code == 0
    assert "declared" in shown.stdout
    assert msgspec.convert(profiled["curves"], tuple[Curve, ...]) == msgspec.convert(KNOWN, FunctionCurves).curves
    assert {request.method for request in measured.requests} == {"GET"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--batch", "8"], "shop.f@v3 takes batches of at most 4"),
        (["--batch", "two"], "expected numbers such as 1,2,4,8"),
        (["--slice", "1g"], "could run on CPU/slot, H100-80GB/3g"),
        (["--method", "other"], "name one of its methods"),
    ],
)
def test_wrong_options_are_refused_before_any_call(measured: ScriptedPlatform, words: list[str], said: str) -> None:
    """The error names the values that are accepted."""
    done = run(*words)

    assert done.exit_code == 1
    assert said in done.stderr
    assert "0 calls" not in done.stderr
    assert {request.method for request in measured.requests} == {"GET"}


def test_a_call_that_fails_ends_the_run_and_keeps_its_results(measured: ScriptedPlatform) -> None:
    """The error is shown as that of any call, and the sum beside it."""
    measured.does("POST", "/v1/functions/shop.f@ver_3g/calls", lambda _: problem("load_failed", "it cannot be loaded"))

    done = run("--batch", "2", "--seconds", "0.1")

    assert done.exit_code == 1
    assert "it cannot be loaded" in done.stderr
    assert "kept with shop.f@v3" in done.stderr
    assert len(measured.asked("/v1/functions/shop.f@v3/curves")) == 1


def test_the_wait_for_a_slice_is_bounded(measured: ScriptedPlatform) -> None:
    """The error names the reason of the wait and the remedies; the start itself is not bounded."""
    waiting = event("stage", {"name": "waiting", "ms": 5.0, "detail": {"reason": "all 1 devices are in use"}})
    measured.does("POST", "/v1/functions/shop.f@ver_slot/calls", lambda _: stream(waiting, hold=True))

    done = run("--batch", "2", "--seconds", "0.1", "--wait", "0.2")

    assert done.exit_code == 1
    assert "No slice of this kind was free within 0.2 s: all 1 devices are in use." in done.stderr
    assert "wait longer with --wait, or name another kind with --slice" in done.stderr
    assert "0 calls, 0 USD in all; nothing was measured that could be kept" in done.stderr


def test_a_run_without_results_prints_its_cost_in_full() -> None:
    """A price is never printed as a power of ten."""
    profiled = msgspec.convert(KNOWN, FunctionCurves)
    run = ProfileRun(
        profiled=profiled,
        load=profiled.methods[0],
        given={},
        sizes=(1,),
        seconds=1.0,
        calls=19,
        cost=Decimal("2.78722E-7"),
    )
    assert run.summary() == "19 calls, 0.000000278722 USD in all; nothing was measured that could be kept"

    run.kept = 1
    assert run.summary().endswith("in all; kept with shop.f@v3")


def test_a_version_without_curves_refers_to_the_one_before(platform: ScriptedPlatform) -> None:
    """Placement uses the curves of the version before it."""
    platform.will("GET", "/v1/functions/shop.f/curves", answer(KNOWN | {"curves": []}))

    assert (
        "Nothing was measured of shop.f@v3 itself; 'pilotlight placement plan shop.f@v3' tells" in run("--show").stderr
    )
