"""What controllers that come and go make of people's word and of a ramp, with real processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.system.support.further_controller import further_controller, says_that_it_leads
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(150)]
PASSED = 'pilotlight_controller_pass_seconds_count{versions="all"}'
PASSES = 16
"""Of a new controller: four seconds, of which it may not end anything in the first and a half."""
MOST_WITHOUT_HEADROOM = 4
"""Five running calls, at 80 %, are worth six containers."""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform of its own, since its controller is killed."""
    with run_platform(tmp_path_factory.mktemp("scale"), "--cpu-slots", "6", "--blanks", "1") as running:
        running.deploy(APPS / "held" / "app.py")
        yield running


def held(platform: Platform, function: str) -> dict[str, str]:
    """The containers of a function and their states."""
    return {each["id"]: each["state"] for each in platform.containers("held") if each["function"] == function}


def ready(platform: Platform, function: str, count: int) -> set[str] | None:
    """The containers of a function, if there are so many and all of them are ready."""
    found = held(platform, function)
    return set(found) if len(found) == count and set(found.values()) == {"ready"} else None


def scale(platform: Platform, *words: str) -> Any:
    return json.loads(platform.cli("scale", "held.plain", *words, "--json").stdout)


def say_until_soon(platform: Platform) -> None:
    """Say an instant that is soon; on a busy machine the soonest are past when they are heard."""
    for seconds in (2, 4, 8, 16, 32):
        until = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
        if platform.cli("scale", "held.plain", "--min", "2", "--until", until, check=False).returncode == 0:
            return
    raise AssertionError("it was not heard in time")


def deploys(platform: Platform) -> int:
    return len(platform.http.get("/v1/apps/held/history").json()["history"])


def restart_controller(platform: Platform) -> None:
    """Kill it, and wait until another one leads and has made so many passes that it would have ended what it may."""
    killed = platform.kill("controller")

    def has_decided() -> bool:
        if platform.pids.get("controller", killed) == killed:
            return False
        try:
            told = platform.metrics_by_process()["controller"].splitlines()
        except (httpx.TransportError, KeyError):
            return False  # it starts
        passes = next(line for line in told if line.startswith(PASSED))
        return "pilotlight_controller_leads 1.0" in told and float(passes.split()[-1]) >= PASSES

    wait_until(has_decided, "another controller decides")


def test_what_is_said_holds_over_a_restart_of_the_controller_and_ends_by_itself(platform: Platform) -> None:
    """Two containers come without a call and without a deploy, stay while another controller takes over, and go."""
    before = deploys(platform)
    assert held(platform, "plain") == {}

    said = scale(platform, "--min", "2", "--for", "1h")
    assert said["min_containers"]["ends_at"] > datetime.now(UTC).timestamp() + 3_000
    there = wait_until(lambda: ready(platform, "plain", 2), "two containers are there")

    restart_controller(platform)
    assert ready(platform, "plain", 2) == there

    say_until_soon(platform)
    wait_until(lambda: not held(platform, "plain"), "both are gone")
    assert scale(platform)["min_containers"] == {
        "value": 0.0, "because": "as deployed", "deployed": 0.0, "ends_at": None,
    }  # fmt: skip
    assert deploys(platform) == before


def test_a_warm_window_keeps_its_containers_without_a_call(platform: Platform) -> None:
    """And people's word goes before it."""
    (there,) = wait_until(lambda: ready(platform, "warm", 1), "the window's container is there")
    assert platform.call("held.warm", number=7).json()["output"] == 7
    shown = platform.http.get("/v1/functions/held.warm/autoscaler").json()
    assert shown["min_containers"]["because"] == "warm window 00:00-24:00 Europe/Berlin"
    assert there in held(platform, "warm")

    platform.http.patch("/v1/functions/held.warm/autoscaler", json={"min_containers": 0}).raise_for_status()
    wait_until(lambda: not held(platform, "warm"), "it is gone")


def lasting(platform: Platform) -> dict[str, int]:
    """The containers of `ramps.Lasting`, and how many calls run in each."""
    return {each["id"]: each["running"] for each in platform.containers("ramps")}


def begin(platform: Platform) -> None:
    """A call that lasts longer than this test."""
    path, body = "/v1/functions/ramps.Lasting/calls", {"input": {"seconds": 120.0}, "method": "work"}
    platform.http.post(path, json=body, headers={"Prefer": "respond-async"}).raise_for_status()


def run_one_each(platform: Platform, count: int) -> dict[str, int]:
    """Wait until so many calls run; their containers, of which each has one."""

    def look() -> dict[str, int] | None:
        found = lasting(platform)
        return found if sum(found.values()) == count else None

    found = wait_until(look, f"{count} calls run")
    assert set(found.values()) == {1}, found
    return found


@pytest.mark.variant
def test_a_ramp_goes_on_under_another_leader(platform: Platform) -> None:
    """Two controllers, of which one stands still in the middle of a ramp, and later the other one is killed: each call
    has one container, none is lost, and whoever was away does nothing when it comes back.
    """
    platform.deploy(APPS / "ramps" / "app.py")
    metrics_url = json.loads(platform.ready_file.read_text())["metrics_by_process"]["controller"]
    with further_controller(platform) as further:
        begin(platform)
        wait_until(lambda: len(lasting(platform)) == 1, "the ramp has begun")
        still = platform.signal("controller", signal.SIGSTOP)
        try:
            begin(platform)
            wait_until(further.leads, "the other one leads")
            two = run_one_each(platform, 2)
        finally:
            os.kill(still, signal.SIGCONT)
        wait_until(lambda: says_that_it_leads(metrics_url) is False, "the first one knows that it leads no more")

        begin(platform)
        wait_until(lambda: len(lasting(platform)) == 3, "the ramp goes on")
        further.kill()
        begin(platform)
        four = run_one_each(platform, MOST_WITHOUT_HEADROOM)

    assert platform.pids["controller"] == still
    assert set(two) <= set(four)
    assert platform.http.post("/v1/apps/ramps/stop").is_success
