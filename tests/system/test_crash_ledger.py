"""The bill adds up whatever dies, the database too. SEED=n repeats a run."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.fixtures.postgres import Postgres, postgres
from tests.system.support.jobload import JobLoad
from tests.system.support.ledger import (
    check_devices_are_accounted_whole,
    check_no_instant_is_sold_twice,
    check_nothing_is_in_quarantine,
    ended,
    receipts,
)
from tests.system.support.load import Load
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]
DATABASE = "database"
PARTS = ("gateway", "agent", "duties", "nats", DATABASE)
KILLED_FOR_S = 1.0
"""How long the database is away."""


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, database: Postgres) -> Iterator[Platform]:
    """A platform of its own, since its parts are killed, whose ledger is in PostgreSQL."""
    folder, flags = tmp_path_factory.mktemp("billed"), ("--cpu-slots", "8", "--blanks", "1")
    with run_platform(folder, *flags, "--ledger-url", database.url) as running:
        running.ledger_url = database.url
        running.deploy(APPS / "crash" / "app.py")
        yield running


@pytest.mark.parametrize(
    ("jobs", "calls", "kills"),
    [
        pytest.param(200, 200, 10, marks=pytest.mark.variant),
        pytest.param(10_000, 10_000, 100, marks=[pytest.mark.long, pytest.mark.timeout(3_600)]),
    ],
)
def test_the_bill_adds_up_whatever_dies(
    platform: Platform, database: Postgres, chance: random.Random, jobs: int, calls: int, kills: int
) -> None:
    """Receipts are what callers were told, the ledger's sums are those of its lines; nothing twice, nothing missing."""
    load = JobLoad(platform=platform, seed=chance.randrange(10**9), count=jobs, longest=0.01)
    live = Load(platform=platform, seed=chance.randrange(10**9))
    submitting = threading.Thread(target=load.submit_all)
    with live.running():
        submitting.start()
        for part in [chance.choice(PARTS) for _ in range(kills)]:
            before = live.codes()["ok"] + len(load.accepted)
            wait_until(partial(have_ended, live, load, before + (jobs + calls) // (2 * kills)), "calls end", 120.0)
            kill(platform, database, part)
        wait_until(partial(have_ended, live, load, jobs + calls), "all calls have ended", 1_800.0)
        submitting.join()
    wait_until(platform.is_ready, "it is ready", 60.0)
    wait_until(load.all_ended, "every job has ended", 900.0)
    check_bill(platform, live, load)


def have_ended(live: Load, load: JobLoad, count: int) -> bool:
    """Whether so many calls were answered, or accepted as jobs."""
    return live.codes()["ok"] + len(load.accepted) >= count


def kill(platform: Platform, database: Postgres, part: str) -> None:
    """kill -9, as soon as the part is there again after its last death."""
    if part == DATABASE:
        database.kill()
        time.sleep(KILLED_FOR_S)
        database.start()
        return
    wait_until(partial(platform.runs, part), f"{part} is there", 60.0)
    platform.kill(part)


def check_bill(platform: Platform, live: Load, load: JobLoad) -> None:
    """What callers were told is what the ledger has, to the nanosecond, and the ledger agrees with itself."""
    answered = {one.answer["id"]: one.answer["usage"] for one in live.outcomes if one.code == "ok"}
    records = wait_until(lambda: load.ended({one.id for one in load.accepted}), "every accepted job has ended")
    done = [job for job in records.values() if job["state"] == "succeeded"]
    wait_until(lambda: answered.keys() | {job["run"] for job in done} <= ended(platform), "every call is folded", 120.0)

    found = receipts(platform)
    once = {call: usage["ns"] for call, usage in answered.items() if usage["attempts"] == 1}
    assert {call: found[call] for call in once} == once
    again = {call: usage["ns"] for call, usage in answered.items() if usage["attempts"] > 1}
    assert {call: ns for call, ns in again.items() if found[call] < ns} == {}
    first = {job["run"]: job["usage"]["ns"] for job in done if job["usage"]["attempts"] == 1}
    assert {run: found[run] for run in first} == first
    check_nothing_is_in_quarantine(platform)
    check_no_instant_is_sold_twice(platform)
    check_devices_are_accounted_whole(platform)
    audit = platform.cli("ledger", "verify", "--ledger-url", platform.ledger_url)
    assert "differ" not in audit.stdout, audit.stdout
