"""Accepted means stored: jobs and live calls while everything is killed. SEED=n repeats a run.

Of two gateways each is the home of some functions, two agents run them, and what they are told goes over one server.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pilotlight
from tests.system.support.jobload import STARTS_AGAIN, JobLoad, survive
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.processes import is_alive
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]
GATEWAYS = ("gateway", "gateway-2")
PARTS = (*GATEWAYS, "agent", "agent-2", "nats", "duties", "controller")
OPTIONS = ("--extra-gateways", "1", "--extra-agents", "1", "--cpu-slots", "4", "--blanks", "0")


@contextmanager
def started(folder: Path, *options: str) -> Iterator[Platform]:
    """A platform of its own, since its parts are killed."""
    with run_platform(folder, *OPTIONS, *options) as running:
        running.deploy(APPS / "crash" / "app.py")
        yield running


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """On one server."""
    with started(tmp_path_factory.mktemp("jobs")) as running:
        yield running


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Platform]:
    """On three, each of which keeps everything."""
    with started(tmp_path, "--nats-servers", "3") as running:
        yield running


def test_every_accepted_job_ends_once_whatever_dies(platform: Platform, chance: random.Random) -> None:
    """A hundred jobs beside live calls, while one part after another is killed."""
    survive(platform, chance, PARTS, jobs=100, kills=4, within=120.0)


def test_a_map_goes_on_when_its_gateway_dies(platform: Platform, chance: random.Random) -> None:
    """The one that it talks to is killed twice: every input is one job, and has its answer, in order."""
    names = [f"map-{chance.getrandbits(64):x}" for _ in range(120)]
    with pilotlight.Client(url=platform.url, api_key=platform.key) as client:
        again = pilotlight.Function.from_name("crash", "again").options(client=client)
        answers = again.starmap((name, 0.01) for name in names)
        found = [next(answers) for _ in range(30)]
        for _ in range(2):
            wait_until(lambda: is_alive(platform.pids.get("gateway", 0)), "it is there", 30.0)
            platform.kill("gateway")
            found += [next(answers) for _ in range(chance.randrange(10, 40))]
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
    survive(platform, chance, PARTS, jobs=10_000, kills=60, within=900.0, longest=0.01)


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_ten_thousand_jobs_end_once_though_servers_of_the_bus_die_too(cluster: Platform, chance: random.Random) -> None:
    """As above, on a bus of three servers, any of which may be the next to die."""
    survive(cluster, chance, (*PARTS, "nats-2", "nats-3"), jobs=10_000, kills=60, within=900.0, longest=0.01)


@pytest.mark.variant
@pytest.mark.parametrize("dead", [0, pytest.param(1, marks=pytest.mark.variant)])
def test_jobs_of_a_dead_home_go_on_without_it(platform: Platform, chance: random.Random, dead: int) -> None:
    """Nothing starts it again: the other gateway becomes the home of its shards, and runs what comes."""
    os.kill(platform.process.pid, signal.SIGSTOP)
    try:
        platform.kill(GATEWAYS[dead])
        platform.http.base_url = platform.urls[1 - dead]
        load = JobLoad(platform=platform, seed=chance.randrange(10**9), count=30, longest=0.0)
        load.submit_all()
        wait_until(load.all_ended, "they have ended", 60.0)
        records = load.records()
    finally:
        os.kill(platform.process.pid, signal.SIGCONT)
        platform.http.base_url = platform.urls[dead]
    assert {records[one.id]["state"] for one in load.accepted} == {"succeeded"}
    wait_until(platform.is_ready, "the dead one is back", 30.0)
    platform.http.base_url = platform.url
