"""A call as it happens: its stages, and where the time went."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight.cli.timeline import Timeline, summary
from tests.sdk.cli.shell import ESCAPE, invoke, on_terminal
from tests.sdk.scripted import ScriptedPlatform, event, result, stream


def test_a_call_shows_its_stages_on_one_line(platform: ScriptedPlatform) -> None:
    """The line is removed when the answer comes."""
    stage = event("stage", {"name": "loading", "ms": 1200.0, "detail": {"import": 900.0}})
    platform.will("POST", "/v1/functions/hello.greet/calls", stream(stage, result("hi")))
    shown = on_terminal("call", "hello.greet")
    assert "loading 1.20 s (import 900 ms)" in ESCAPE.sub("", shown)
    assert "\x1b[2K" in shown
    assert '"hi"' in shown


def test_a_cold_start_is_shown_stage_by_stage(platform: ScriptedPlatform) -> None:
    """Without a terminal each stage is a line, except those of every call."""
    stages = [
        {"name": "queued", "ms": 1, "detail": {}},
        {"name": "binding", "ms": 20, "detail": {"blank": 0.3}},
        {"name": "loading", "ms": 30.4, "detail": {"blank": 0.3, "stage": 9}},
        {"name": "loading", "ms": 1500, "detail": {"blank": 0.3, "stage": 9, "import": 1470}},
        {"name": "running", "ms": 1501, "detail": {}},
    ]
    answer = result("x", cold_start={"blank": 0.3, "import": 1470}, usage={"batch_size": 3, "cost": "0.1"})
    platform.will(
        "POST", "/v1/functions/hello.greet/calls", stream(*(event("stage", stage) for stage in stages), answer)
    )
    binding, loading, last = invoke("call", "hello.greet").stderr.splitlines()
    assert binding == "hello.greet: binding 20 ms (blank 0.3 ms)"
    assert loading == "hello.greet: loading 30 ms (blank 0.3 ms, stage 9.0 ms)"
    assert last.endswith("  cold start blank 0.3 ms, import 1.47 s  in a batch of 3  0.1 USD")


def test_a_stage_is_shown_once_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Stages of every call are not shown without a terminal."""
    with Timeline("hello.greet") as timeline:
        for name, detail in (
            ("queued", {}),
            ("waiting", {"reason": "no free slice"}),
            ("waiting", {}),
            ("running", {}),
        ):
            timeline.on_stage({"name": name, "ms": 20.0, "detail": detail})
        timeline.on_stage({})
    assert capsys.readouterr().err == "hello.greet: waiting 20 ms (no free slice)\nhello.greet:  0.0 ms\n"


@pytest.mark.parametrize(
    ("response", "waited_s", "line"),
    [
        ({}, 0.0, "  0.0 ms"),
        ({"version": "a.f@v1", "latency": {"total_ms": 12.0}}, 2.5, "a.f@v1  12 ms  2.50 s of waiting before that"),
        ({"latency": {"total_ms": 1.0, "stages": {"queue": 0.01, "execute": "?"}}}, 0.0, "  1.0 ms"),
        ({"usage": {"batch_size": 3, "cost": "0.1", "currency": "EUR"}}, 0.0, "  0.0 ms  in a batch of 3  0.1 EUR"),
        ({"cold_start": {"bind": 20.0, "import": 900}}, 0.0, "  0.0 ms  cold start bind 20 ms, import 900 ms"),
    ],
)
def test_a_summary_has_the_parts_of_the_answer(response: dict[str, Any], waited_s: float, line: str) -> None:
    """An older platform may leave out any part."""
    assert summary(response, waited_s) == line
