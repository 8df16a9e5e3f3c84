"""`pilotlight diagnose`: what bounds functions, for people and for scripts."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

import pytest
from typer.testing import CliRunner, Result

from pilotlight.cli.commands.scaling.diagnose import METRICS, promise_text
from pilotlight.cli.main import app
from pilotlight_core.model.api.seeing.diagnosis_api import PromiseInfo
from pilotlight_gateway.diagnosis.measured_metrics import measured_metrics
from tests.gateway.diagnosis.windows import window
from tests.sdk.scripted import ScriptedPlatform, answer

FOUND: dict[str, Any] = {
    "function": "search.embed@v1", "window_s": 600.0, "calls": 5_000, "name": "gpu", "confidence": 0.93, "gain": 1.0,
    "sentence": "GPU-bound: calls to search.embed@v1 need 104% of its slices even in full batches (32.0 of 32 now).",
    "trouble": "slow", "evidence": ["1850/s x 2.26 ms = 4.17 slices of 4, busy 100%"],
    "cures": [
        {"cost": "gpu_time", "what": "max_containers=6", "command": "pilotlight scale search.embed --max 6"},
        {"cost": "hardware", "what": "a node more, if nothing is free"},
    ],
    "promises": [
        {"metric": "p95_ms", "value": 84.0, "tolerance": 0.6, "at_most": True},
        {"metric": "rate", "value": 1_840.0, "tolerance": 0.05},
    ],
    "metrics": {"p95_ms": 1_290.0, "rate": 1_773.0},
    "next": {"name": "gateway", "sentence": "Gateway-bound: …"},
}  # fmt: skip


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["diagnose", *words])


def test_a_diagnosis_says_what_to_do_and_what_will_be_different(platform: ScriptedPlatform) -> None:
    platform.will("GET", "/v1/functions/search.embed/diagnosis", answer(FOUND))

    assert run("search.embed").stdout.splitlines() == [
        FOUND["sentence"],
        "  1850/s x 2.26 ms = 4.17 slices of 4, busy 100%",
        "To do, the cheapest first (confidence 93%):",
        "  1. max_containers=6 (a setting that costs time of devices)",
        "     pilotlight scale search.embed --max 6",
        "  2. a node more, if nothing is free (hardware)",
        "If that is right, then after the first one:",
        "  95 of 100 calls take: at most 84 ms (now 1.29e+03 ms)",
        "  calls that end well: about 1.84e+03/s (now 1.77e+03/s)",
        "Then: Gateway-bound: …",
    ]


def test_scripts_read_all_of_it(platform: ScriptedPlatform) -> None:
    platform.will("GET", "/v1/functions/search.embed/diagnosis", answer(FOUND))
    found = json.loads(run("search.embed", "--json", "--window", "30m", "--rate", "500").stdout)

    assert found["cures"][0]["command"] == "pilotlight scale search.embed --max 6"
    assert parse_qs(platform.requests[0].query) == {"window": ["30m"], "rate": ["500"]}


def test_without_a_name_each_function_has_a_sentence(platform: ScriptedPlatform) -> None:
    line = {"function": "search.embed@v1", "name": "gpu", "sentence": "GPU-bound: …", "calls": 9, "first_cure": "x"}
    platform.will("GET", "/v1/diagnoses", answer({"window_s": 600.0, "functions": [line], "left": 2}))
    done = run()

    assert done.stdout == "search.embed@v1: GPU-bound: … First: x.\n"
    assert "2 functions with fewer calls are left out." in done.stderr


@pytest.mark.parametrize("words", [("--window", "ten"), ("search.embed", "--window", "5"), ("--rate", "5")])
def test_words_that_mean_nothing_are_refused(platform: ScriptedPlatform, words: tuple[str, ...]) -> None:
    assert run(*words).exit_code != 0
    assert platform.requests == []


def test_each_metric_that_may_be_promised_has_its_words() -> None:
    assert measured_metrics(window()).keys() <= METRICS.keys()


def test_parts_are_shown_as_percentages() -> None:
    promise = PromiseInfo(metric="loop_part", value=0.49, tolerance=0.3, at_most=True)

    assert promise_text(promise, 0.98) == "the gateway's thread is busy: at most 49% (now 98%)"
