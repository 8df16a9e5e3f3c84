"""Accepted means stored: jobs and live calls while everything is killed. SEED=n repeats a run.

Of two gateways each is the home of some functions, two agents run them, and what they are told goes over one server.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator

import pytest

import pilotlight
from tests.system.conftest import APPS
from tests.system.jobload import JobLoad
from tests.system.ledger import check_no_instant_is_sold_twice, receipts
from tests.system.load import Load
from tests.system.platform import Platform, wait_until
from tests.system.platform import platform as run_platform
from tests.system.processes import is_alive

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
PARTS = ("gateway", "gateway-2", "agent", "agent-2", "nats", "duties", "controller")
STARTS_AGAIN = 3
"""Of an idempotent job: its first start, and two after interruptions."""
HOME_GONE_S = 5.0


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform of its own, since its parts are killed."""
    folder, env = tmp_path_factory.mktemp("jobs"), {"PILOTLIGHT_PREIMPORT": "numpy"}
    options = ("--extra-gateways", "1", "--extra-agents", "1", "--cpu-slots", "4", "--blanks", "1")
    with run_platform(folder, *options, env=env) as running:
        running.deploy(APPS / "crash" / "app.py")
        yield running


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Everything random of a test, from the seed and its name."""
    print(f"SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


def test_every_accepted_job_ends_once_whatever_dies(platform: Platform, chance: random.Random) -> None:
    """Four hundred jobs beside live calls, while one part after another is killed."""
    survive(platform, chance, jobs=400, kills=8, within=120.0)


def test_a_map_goes_on_when_its_gateway_dies(platform: Platform, chance: random.Random) -> None:
    """The one that it talks to is killed twice: every input is one job, and has its answer, in order."""
    names = [f"map-{chance.getrandbits(64):x}" for _ in range(300)]
    with pilotlight.Client(url=platform.url, api_key=platform.key) as client:
        again = pilotlight.Function.from_name("crash", "again").options(client=client)
        answers = again.starmap((name, 0.01) for name in names)
        found = [next(answers) for _ in range(30)]
        for _ in range(2):
            wait_until(lambda: is_alive(platform.pids.get("gateway", 0)), "it is there", 30.0)
            platform.kill("gateway")
            found += [next(answers) for _ in range(chance.randrange(10, 60))]
        found += answers

    assert found == names
    load = JobLoad(platform=platform, seed=0, count=0)
    assert load.open() == 0
    wait_until(lambda: load.starts().keys() >= set(names), "all lines are logged")
    assert max(load.starts()[name] for name in names) <= STARTS_AGAIN


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_ten_thousand_jobs_end_once_whatever_dies(platform: Platform, chance: random.Random) -> None:
    """As above, for minutes."""
    survive(platform, chance, jobs=10_000, kills=60, within=900.0, longest=0.01)


def survive(
    platform: Platform, chance: random.Random, *, jobs: int, kills: int, within: float, longest: float = 0.05
) -> None:
    """Submit, call and kill; then every promise is checked."""
    load = JobLoad(platform=platform, seed=chance.randrange(10**9), count=jobs, longest=longest)
    live = Load(platform=platform, seed=chance.randrange(10**9))
    before = set(load.records())
    submitting = threading.Thread(target=load.submit_all)
    with live.running(each=1):
        submitting.start()
        for part in [chance.choice(PARTS) for _ in range(kills)]:
            time.sleep(chance.uniform(0.1, 2.0))
            print(part)
            wait_until(lambda part=part: is_alive(platform.pids.get(part, 0)), f"{part} is there", 30.0)  # type: ignore[misc]
            platform.kill(part)
        submitting.join()
    wait_until(platform.is_ready, "it is ready", 30.0)
    wait_until(lambda: load.open() == 0, "every job has ended", within)
    check(platform, load, before)


def check(platform: Platform, load: JobLoad, before: set[str]) -> None:
    """Each accepted job has ended, once; nothing was started or billed that must not have been."""
    assert len(load.accepted) == load.count
    records = load.records()
    assert set(records) - before == {one.id for one in load.accepted}
    starts = load.starts()
    for one in load.accepted:
        job = records[one.id]
        idempotent = one.ref == "crash.again"
        if job["state"] == "succeeded":
            assert platform.http.get(f"/v1/calls/{one.id}").json()["output"] == one.name
        else:
            assert (job["state"], job["reason"]) == ("failed", "interrupted"), job
        assert 1 <= job["attempts"] <= (STARTS_AGAIN if idempotent else 1), job
        assert starts[one.name] <= job["attempts"], job
    check_no_instant_is_sold_twice(platform)
    billed = receipts(platform)
    for one in load.accepted:
        job = records[one.id]
        if job["state"] == "succeeded":
            # What an agent had not written when it was killed is never billed; nothing is billed twice.
            assert billed.get(job["run"], 0) <= job["usage"]["ns"], job


def test_a_dead_home_delays_jobs_by_seconds(platform: Platform, chance: random.Random) -> None:
    """Those that wait, and those that come: the heir of its shards goes on within its lease and a little."""
    names = ("gateway", "gateway-2")
    load = JobLoad(platform=platform, seed=chance.randrange(10**9), count=30, longest=0.0)
    load.submit_all()
    wait_until(lambda: load.open() == 0, "they have ended", 60.0)
    for part in names:
        platform.kill(part)
        killed = time.time()
        wait_until(platform.is_ready, "a gateway answers", 30.0)
        later = JobLoad(platform=platform, seed=chance.randrange(10**9), count=30, longest=0.0)
        later.submit_all()
        wait_until(lambda later=later: later.open() == 0, "they have ended", 60.0)  # type: ignore[misc]
        records = later.records()
        jobs = [records[one.id] for one in later.accepted]
        assert {job["state"] for job in jobs} == {"succeeded"}
        assert max(job["started_at"] - max(killed, job["created_at"]) for job in jobs) < HOME_GONE_S
