"""A cure is tried for a while, taken back whatever happens, and held against what was promised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import convert
from typer.testing import CliRunner, Result

from pilotlight.cli.commands.scaling import diagnose
from pilotlight.cli.cure_trial import (
    Clock,
    check_unsaid,
    measured_until,
    report_of,
    tried_settings,
)
from pilotlight.cli.main import app
from pilotlight.definitions.errors import BadInput
from pilotlight_core.model.api.autoscaler_api import AutoscalerInfo, ScaleBoundInfo
from pilotlight_core.model.api.seeing.diagnosis_api import CureInfo, FunctionDiagnosis, PromiseInfo
from pilotlight_core.model.scaling.scale_bounds import SAID
from tests.sdk.scripted import ScriptedPlatform, answer, problem

NAME = "search.embed"
DIAGNOSIS, BOUNDS = f"/v1/functions/{NAME}/diagnosis", f"/v1/functions/{NAME}/autoscaler"
FOUND: dict[str, Any] = {
    "function": f"{NAME}@v1", "window_s": 600.0, "calls": 5_000, "name": "cold", "sentence": "Cold-start-bound.",
    "cures": [{"cost": "gpu_time", "what": "min_containers=2", "changes": {"min_containers": 2.0}}],
    "promises": [
        {"metric": "p95_ms", "value": 80.0, "tolerance": 0.5, "at_most": True},
        {"metric": "start_part", "value": 0.0, "tolerance": 0.0},
    ],
    "metrics": {"p95_ms": 4_260.0, "start_part": 0.83},
}  # fmt: skip


def found(**more: Any) -> FunctionDiagnosis:
    fields: dict[str, Any] = {
        "function": f"{NAME}@v1", "window_s": 60.0, "calls": 100, "name": "cold", "sentence": "Cold-start-bound.",
        "cures": (cure(min_containers=2.0),), "promises": (PromiseInfo(metric="rate", value=10.0, tolerance=0.1),),
    }  # fmt: skip
    return FunctionDiagnosis(**fields | more)


def cure(**changes: float) -> CureInfo:
    return CureInfo(cost="setting", what="the cure", changes=changes)


def bounds(**said: ScaleBoundInfo) -> dict[str, Any]:
    deployed = {
        name: {"value": value, "because": "as deployed", "deployed": value}
        for name, value in (("min_containers", 0), ("max_containers", 10), ("buffer_containers", 0),
                            ("scaledown_window", 60.0), ("zero_window", 60.0), ("forecast", True))
    }  # fmt: skip
    more = {name: {"value": one.value, "because": one.because, "deployed": 0} for name, one in said.items()}
    return {"function": NAME, "version": f"{NAME}@v1", "at": 1.0, "warm": [], "changes_at": None} | deployed | more


HELD = ScaleBoundInfo(value=2, because=f"{SAID} with the key key_1, until 18:00", deployed=0)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the command has slept; time passes by that alone."""
    seconds: list[float] = []
    made = Clock(lambda: 1_790_000_030.0 + sum(seconds), seconds.append)
    monkeypatch.setattr(diagnose, "Clock", lambda: made)
    return seconds


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["diagnose", NAME, "--try", *words])


def after(**metrics: float) -> dict[str, Any]:
    return FOUND | {"name": "nothing", "cures": [], "promises": [], "calls": 200, "metrics": metrics}


def test_a_kept_promise_is_said_and_the_setting_taken_back(platform: ScriptedPlatform, slept: list[float]) -> None:
    """It would end by itself, too; what is measured begins after containers had time to start."""
    platform.will("GET", DIAGNOSIS, answer(FOUND), answer(after(p95_ms=95.0, start_part=0.0)))
    platform.will("GET", BOUNDS, answer(bounds()), answer(bounds(min_containers=HELD)))
    platform.will("PATCH", BOUNDS, *[answer(bounds(min_containers=HELD))] * 2)
    done = run()
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "Tried: min_containers=2, measured over 3 min and 200 calls, taken back.",
        "  95 of 100 calls take: 95 ms (promised at most 80 ms, before 4.26e+03 ms): kept",
        "  starts are of the time of calls: 0% (promised about 0%, before 83%): kept",
        "What was promised has come: the cause is cold.",
    ]
    said, taken_back = [asked.json for asked in platform.asked(BOUNDS) if asked.method == "PATCH"]
    assert said == {"min_containers": 2, "ends_at": None, "ends_in_s": 360.0}
    assert taken_back == {"min_containers": None, "ends_at": None, "ends_in_s": None}
    assert "window=3m" in platform.asked(DIAGNOSIS)[-1].query
    (waited,) = slept
    assert waited <= 300.0 + 1.0


def test_a_broken_promise_is_an_exit_code_too(platform: ScriptedPlatform, slept: list[float]) -> None:
    platform.will("GET", DIAGNOSIS, answer(FOUND), answer(after(p95_ms=3_000.0, start_part=0.0)))
    platform.will("GET", BOUNDS, answer(bounds()), answer(bounds(min_containers=HELD)))
    platform.will("PATCH", BOUNDS, *[answer(bounds())] * 2)
    done = run("--json", "--for", "3m")
    assert done.exit_code == 1
    assert [each["kept"] for each in json.loads(done.stdout)["promises"]] == [False, True]
    assert slept[0] <= 180.0 + 1.0


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_whatever_ends_it_the_setting_is_taken_back(
    platform: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """Ctrl-C as of a broken connection."""

    def sleep(_: float) -> None:
        raise error

    monkeypatch.setattr(diagnose, "Clock", lambda: Clock(lambda: 0.0, sleep))
    platform.will("GET", DIAGNOSIS, answer(FOUND))
    platform.will("GET", BOUNDS, answer(bounds()), answer(bounds(min_containers=HELD)))
    platform.will("PATCH", BOUNDS, *[answer(bounds())] * 2)
    assert run().exit_code != 0
    assert [asked.json["min_containers"] for asked in platform.asked(BOUNDS) if asked.method == "PATCH"] == [2, None]


def test_what_somebody_says_meanwhile_stays(platform: ScriptedPlatform, slept: list[float]) -> None:
    theirs = ScaleBoundInfo(value=7, because=f"{SAID} with the key key_2", deployed=0)
    platform.will("GET", DIAGNOSIS, answer(FOUND), answer(after(p95_ms=95.0, start_part=0.0)))
    platform.will("GET", BOUNDS, answer(bounds()), answer(bounds(min_containers=theirs)))
    platform.will("PATCH", BOUNDS, answer(bounds(min_containers=HELD)))
    assert run().exit_code == 0
    assert len([asked for asked in platform.asked(BOUNDS) if asked.method == "PATCH"]) == 1
    assert slept


@pytest.mark.parametrize(
    ("diagnosis", "why"),
    [
        (found(cures=(cure(max_batch_size=8.0),)), "it sets max_batch_size, and that could not be undone"),
        (found(cures=(cure(concurrency=8.0, min_containers=2.0),)), "it sets concurrency"),
        (found(cures=(CureInfo(cost="caller", what="send less"),)), "send less: it is no setting"),
        (found(cures=(), promises=(), sentence="Nothing is bound."), "there is nothing to try. Nothing is bound."),
        (found(promises=()), "there is nothing to try"),
    ],
)
def test_what_cannot_be_undone_is_refused_by_name(diagnosis: FunctionDiagnosis, why: str) -> None:
    """A setting of the function's own version, of a tenant's limits, or none."""
    with pytest.raises(BadInput, match=why) as refused:
        tried_settings(diagnosis)
    assert refused.value.more["field"] == "try"


def test_a_cure_that_is_settings_alone_is_tried() -> None:
    one = cure(containers=4.0, max_containers=4.0)
    assert tried_settings(found(cures=(one, cure(max_batch_size=8.0)))) == (one, {"max_containers": 4.0})


def test_what_somebody_has_said_is_not_overwritten(platform: ScriptedPlatform) -> None:
    """Its end would give back what is deployed, and not what was said."""
    check_unsaid(convert(bounds(max_containers=HELD), AutoscalerInfo), {"min_containers": 2.0})
    with pytest.raises(BadInput, match=r"min_containers=2 of search\.embed is held by 'pilotlight scale'.*--reset"):
        check_unsaid(convert(bounds(min_containers=HELD), AutoscalerInfo), {"min_containers": 2.0})
    platform.will("GET", DIAGNOSIS, answer(FOUND))
    platform.will("GET", BOUNDS, answer(bounds(min_containers=HELD)))
    assert run().exit_code != 0
    assert not [asked for asked in platform.asked(BOUNDS) if asked.method == "PATCH"]


@pytest.mark.parametrize("began_at", [0.0, 1.0, 59.0, 1_790_000_030.0])
@pytest.mark.parametrize("for_s", [180.0, 300.0, 3_600.0])
def test_whole_minutes_are_measured_within_the_time(began_at: float, for_s: float) -> None:
    """None begins in the minute in which containers start."""
    until_at, minutes = measured_until(began_at, for_s)
    assert until_at % 60 == 0
    assert until_at <= began_at + for_s
    assert until_at - 60 * minutes >= began_at + 60
    assert 1 <= minutes <= 59


@pytest.mark.parametrize("more", [{"calls": 29}, {"name": "few"}, {"name": "counters"}, {"metrics": {}}])
def test_of_too_little_nothing_is_said(more: dict[str, Any]) -> None:
    seen = found(**{"metrics": {"rate": 10.0}} | more)
    assert report_of(found(), cure(), {}, seen, 3).kept is None
    assert report_of(found(), cure(), {}, found(metrics={"rate": 10.0}), 3).kept is True


@pytest.mark.parametrize("words", [("--for", "2m"), ("--for", "2h"), ("--for", "long")])
def test_how_long_it_is_tried_has_bounds(platform: ScriptedPlatform, words: tuple[str, ...]) -> None:
    assert run(*words).exit_code != 0
    assert platform.requests == []
    assert CliRunner().invoke(app, ["diagnose", "--try"]).exit_code != 0


def test_a_platform_that_refuses_it_ends_it(platform: ScriptedPlatform, slept: list[float]) -> None:
    platform.will("GET", DIAGNOSIS, answer(FOUND))
    platform.will("GET", BOUNDS, answer(bounds()))
    platform.will("PATCH", BOUNDS, problem("forbidden"))
    assert run().exit_code != 0
    assert slept == []
