"""Functions that run by themselves, through the whole path: each tick once, whoever is killed, and as deployed then."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

APP = APPS / "scheduled" / "app.py"
BEAT_S = 2
MINUTE_S = 60
FUNCTION = "scheduled.beat"


MINUTELY = """\
import pilotlight

app = pilotlight.App("scheduled")


@app.gpu_function(schedule=pilotlight.Cron("* * * * *", tz="Europe/Berlin"), scaledown_window=120)
def beat() -> str:
    print("beat", flush=True)
    return "beat"
"""


def running(folder: Path) -> AbstractContextManager[Platform]:
    """A platform in `folder`, of which there is one at a time."""
    return run_platform(folder, "--cpu-slots", "2", "--blanks", "0")


@pytest.fixture(scope="module")
def ticking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform whose parts are killed here, with the functions of `apps/scheduled`."""
    with running(tmp_path_factory.mktemp("scheduled")) as platform:
        platform.deploy(APP)
        yield platform


def jobs(platform: Platform, function: str = FUNCTION) -> list[dict[str, Any]]:
    """All ticks of a function, the first one first."""

    def read() -> httpx.Response | None:
        try:
            answer = platform.http.get("/v1/jobs", params={"function": function, "limit": 1_000})
        except httpx.TransportError:  # the gateway was just killed
            return None
        return answer if answer.is_success else None

    found: list[dict[str, Any]] = wait_until(read, "the jobs are listed", 60.0).json()["jobs"]
    return sorted(found, key=lambda job: job["tick"])


def run_after(
    platform: Platform, at: float, count: int, function: str = FUNCTION, within_s: float = 60.0
) -> list[dict[str, Any]]:
    """The ticks after an instant that succeeded, once there are so many."""

    def look() -> list[dict[str, Any]] | None:
        done = [job for job in jobs(platform, function) if job["tick"] > at and job["state"] == "succeeded"]
        return done if len(done) >= count else None

    return wait_until(look, f"{count} ticks of {function} have run", within_s)


def passed(at: float) -> None:
    """Wait for an instant."""
    wait_until(lambda: time.time() > at, "the time has passed", at - time.time() + 5.0)


def check_none_ran_twice(platform: Platform) -> None:
    """One job for each tick, one attempt for each job, and no more lines in the log than attempts."""
    written, found = lines(platform), jobs(platform)
    assert max(Counter(job["tick"] for job in found).values()) == 1
    assert {job["tick"] % BEAT_S for job in found} == {found[0]["tick"] % BEAT_S}
    begun = [job["attempts"] for job in found if job["attempts"]]
    assert set(begun) == {1}
    assert written <= len(begun)


def lines(platform: Platform) -> int:
    return sum(line["text"].strip() == "beat" for line in platform.logs("scheduled", "beat"))


def test_ticks_come_in_their_order(ticking: Platform) -> None:
    """Every two seconds, each as one job; of a class the method that has a schedule."""
    done = run_after(ticking, 0.0, 3)
    ticks = [job["tick"] for job in done]
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks) * BEAT_S, BEAT_S))
    assert all(job["started_at"] >= job["tick"] for job in done)
    assert run_after(ticking, 0.0, 1, "scheduled.Report")
    wait_until(lambda: lines(ticking) >= len(done), "each has written its line")
    check_none_ran_twice(ticking)


def test_what_comes_next_is_shown(ticking: Platform) -> None:
    """In the description of the app, and by the command."""
    functions = {one["name"]: one for one in ticking.http.get("/v1/apps/scheduled").json()["functions"]}
    (nightly,) = functions["nightly"]["schedules"]
    assert nightly["schedule"]["cron"] == "0 6 * * *"
    assert nightly["next_tick"] > time.time()
    assert "scheduled.Report.refresh" in ticking.cli("app", "schedules", "scheduled").stdout


@pytest.mark.crash
def test_killed_parts_cost_no_tick_and_double_none(ticking: Platform) -> None:
    """The process that stores the jobs, the one that runs them, and the bus."""
    for part in ("duties", "gateway", "nats"):
        run_after(ticking, time.time(), 1)
        ticking.kill(part)
        run_after(ticking, time.time() + BEAT_S, 2)
    check_none_ran_twice(ticking)


@pytest.mark.crash
def test_of_missed_ticks_the_last_one_comes(ticking: Platform) -> None:
    """While the duty stands still, the tick comes that was stored ahead; then the last one, and those after it."""
    run_after(ticking, time.time(), 1)
    ticking.signal("duties", signal.SIGSTOP)
    stopped = time.time()
    passed(stopped + 6 * BEAT_S)
    ticking.signal("duties", signal.SIGCONT)
    resumed = time.time()
    run_after(ticking, resumed + BEAT_S, 1)

    missed = [job["tick"] for job in jobs(ticking) if stopped + 2 * BEAT_S < job["tick"] < resumed]
    assert len(missed) <= 1
    assert [tick for tick in missed if tick <= resumed - BEAT_S] == []
    check_none_ran_twice(ticking)


def test_a_stopped_app_has_no_ticks(ticking: Platform) -> None:
    """What was stored ahead is cancelled; with the next deploy it goes on."""
    run_after(ticking, time.time(), 1)
    assert ticking.http.post("/v1/apps/scheduled/stop").is_success
    stopped = time.time()
    passed(stopped + 2 * BEAT_S)
    assert {job["state"] for job in jobs(ticking) if job["tick"] > stopped} <= {"cancelled"}
    assert ticking.http.get("/v1/apps/scheduled").json()["functions"][0]["schedules"][0]["next_tick"] is None

    ticking.deploy(APP)
    run_after(ticking, time.time(), 2)
    check_none_ran_twice(ticking)


@pytest.mark.variant
@pytest.mark.crash
def test_the_whole_platform_dies_and_starts_again(ticking: Platform) -> None:
    """What was stored ahead comes, and the last missed tick, each once; then the next ones. The last of this one."""
    before = run_after(ticking, time.time(), 2)[-1]["tick"]
    ticking.process.kill()
    ticking.process.wait(20.0)
    died = time.time()
    passed(died + 4 * BEAT_S)
    with running(ticking.state.parent) as platform:
        started = time.time()
        run_after(platform, started, 2)
        check_none_ran_twice(platform)
        late = [job for job in jobs(platform) if before < job["tick"] < started - BEAT_S]

    assert [job["tick"] for job in late if died + BEAT_S < job["tick"] < died + 3 * BEAT_S] == []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_cron_goes_on_after_the_death_of_all(tmp_path: Path) -> None:
    """Of the minutes that pass meanwhile the last one comes late, and none comes twice."""
    source = tmp_path / "scheduled.py"
    source.write_text(MINUTELY)
    with running(tmp_path) as platform:
        platform.deploy(source)
        deployed = time.time()
        done = run_after(platform, deployed, 1, within_s=90.0)[-1]["tick"]
        platform.process.kill()
        platform.process.wait(20.0)
    passed(done + 3 * MINUTE_S + 5.0)
    before = time.time()
    with running(tmp_path) as platform:
        started = time.time()
        run_after(platform, started, 1, within_s=90.0)
        ticks = [job["tick"] for job in jobs(platform)]
        ran = {job["tick"] for job in jobs(platform) if job["state"] == "succeeded"}

    assert [tick % MINUTE_S for tick in ticks] == [0] * len(ticks)
    assert len(ticks) == len(set(ticks))
    assert done in ran
    last_missed = before // MINUTE_S * MINUTE_S
    assert any(last_missed <= tick <= started for tick in ran)
    assert not any(done < tick < last_missed for tick in ran)
