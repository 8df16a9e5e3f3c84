"""Steps of the wall clock, with real processes: no container comes or goes for them, calls are answered by those that
are there, and each tick of a schedule runs once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from pilotlight_core.bus import bus_users, connect
from pilotlight_core.model.subjects import LEASE_BUCKET
from pilotlight_supervisor.embedded_bus import user_url
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.wall_clock import WallClock
from tests.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]

APP = """\
import time

import pilotlight

app = pilotlight.App("timed")


@app.gpu_function(scaledown_window=1.0, forecast=False, max_containers=1)
def said() -> str:
    return "said"


@app.gpu_function(scaledown_window=1.0, forecast=False, max_containers=1, warm=[pilotlight.Warm("{window}")])
def warm() -> str:
    return "warm"


@app.gpu_function(scaledown_window=1_200.0, max_containers=1)
def idle() -> str:
    return "idle"


@app.gpu_function(timeout=3_600.0, max_containers=1)
def busy() -> None:
    time.sleep(3_000.0)


@app.gpu_function(schedule=pilotlight.Period(seconds=2), scaledown_window=1_200.0, max_containers=1)
def beat() -> str:
    return "beat"
"""
FUNCTIONS = {"said", "warm", "idle", "busy", "beat"}
HOUR = 3_600.0
STEPS = (3 * HOUR, 0.0, -3 * HOUR, 90.0, -90.0, 0.0)
"""What the clock shows one after the other, beyond what it should."""
PASSES = 8
"""Two seconds of a controller, in which it would end and start what it wants to."""
BEAT_S = 2
PASSED = 'pilotlight_controller_pass_seconds_count{versions="all"}'
BINDS = 'pilotlight_controller_commands_total{command="Bind"}'


@dataclass(frozen=True)
class Timed:
    """The platform, and the clock of its processes."""

    platform: Platform
    clock: WallClock


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Timed]:
    """One whose functions have each one container, for another reason each."""
    folder = tmp_path_factory.mktemp("timed")
    clock, app = WallClock(folder), folder / "app.py"
    now = datetime.now(UTC)
    app.write_text(APP.format(window=f"{now - timedelta(hours=2):%H:%M}-{now + timedelta(hours=2):%H:%M}"))
    with run_platform(folder, "--cpu-slots", "6", "--blanks", "0", env=clock.env) as running:
        running.deploy(app)
        running.cli("scale", "timed.said", "--min", "1", "--for", "1h")
        begun = running.http.post(
            "/v1/functions/timed.busy/calls", json={"input": {}}, headers={"Prefer": "respond-async"}
        )
        begun.raise_for_status()
        assert running.output("timed.idle") == "idle"
        wait_until(lambda: of_functions(running) == dict.fromkeys(FUNCTIONS, 1), "each function has its container")
        yield Timed(running, clock)


def of_functions(platform: Platform) -> Counter[str]:
    """How many ready containers each function has."""
    return Counter(each["function"] for each in platform.containers("timed") if each["state"] == "ready")


def ids(platform: Platform) -> set[str]:
    return {each["id"] for each in platform.containers("timed")}


def told(platform: Platform, name: str) -> float:
    """A number among the controller's metrics."""
    lines = platform.metrics_by_process()["controller"].splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(name)), 0.0)


def decided(platform: Platform) -> None:
    """Wait until the controller has made some passes."""
    before = told(platform, PASSED)
    wait_until(lambda: told(platform, PASSED) >= before + PASSES, "the controller has decided")


def ticks(platform: Platform) -> list[dict[str, Any]]:
    answer = platform.http.get("/v1/jobs", params={"function": "timed.beat", "limit": 1_000}).raise_for_status()
    found: list[dict[str, Any]] = answer.json()["jobs"]
    return found


def a_tick_runs(platform: Platform, clock: WallClock) -> None:
    """Wait until one has run that came after now."""
    at = clock.time()

    def has_run() -> bool:
        return any(at <= job["tick"] < at + 60.0 and job["state"] == "succeeded" for job in ticks(platform))

    wait_until(has_run, f"a tick runs with the clock {clock.step_s:+g} s off")


async def forget_leases(platform: Platform) -> int:
    """What the bus does when its own clock is set ahead: it forgets all leases; how many."""
    url = user_url(platform.state / "nats", urlsplit(platform.nats_url).port or 0, bus_users.OPERATOR)
    async with connect(url, name="clock", inbox=bus_users.operator().inbox, makes_streams=False) as bus:
        leases = bus.kv(LEASE_BUCKET)
        keys = await leases.keys()
        for key in keys:
            await leases.delete(key)
        return len(keys)


def test_a_clock_that_is_set_costs_no_container(timed: Timed) -> None:
    """Ahead and back, by hours and by minutes: what people say, a warm window, an idle window, a running call and a
    schedule keep the containers that they have, and each answers.
    """
    platform, clock = timed.platform, timed.clock
    before, binds = ids(platform), told(platform, BINDS)
    for step_s in STEPS:
        clock.set(step_s)
        decided(platform)
        a_tick_runs(platform, clock)
        assert ids(platform) == before
        for function in ("said", "warm", "idle"):
            assert platform.output(f"timed.{function}") == function
    assert told(platform, BINDS) == binds
    assert of_functions(platform) == dict.fromkeys(FUNCTIONS, 1)
    assert max(Counter(job["tick"] for job in ticks(platform)).values()) == 1
    assert {job["attempts"] for job in ticks(platform) if job["attempts"]} == {1}


def test_a_bus_whose_clock_is_set_costs_no_container(timed: Timed) -> None:
    """It forgets the leases of homes, duties and the controller, who take them again."""
    platform, clock = timed.platform, timed.clock
    before = ids(platform)
    assert asyncio.run(forget_leases(platform)) > 1
    wait_until(lambda: told(platform, "pilotlight_controller_leads") == 1.0, "the controller leads")
    decided(platform)
    for function in ("said", "warm", "idle"):
        assert platform.output(f"timed.{function}") == function
    a_tick_runs(platform, clock)
    assert ids(platform) == before
