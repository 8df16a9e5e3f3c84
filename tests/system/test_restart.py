"""A platform ends in order, or not, and starts again on the same state."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import pilotlight
from tests.system.support.ledger import check_no_instant_is_sold_twice, receipts
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.processes import cgroups_of, descendants, is_alive
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until


def running(folder: Path) -> AbstractContextManager[Platform]:
    """A platform in `folder`, of which there is one at a time."""
    return run_platform(folder, "--cpu-slots", "4", "--blanks", "1")


@pytest.mark.variant
def test_what_was_deployed_survives_a_stop_in_order(tmp_path: Path) -> None:
    """Ctrl-C lets a call end that runs, leaves nothing running, and the next start knows apps, keys and usage."""
    with running(tmp_path) as platform, ThreadPoolExecutor(1) as callers:
        platform.deploy(APPS / "crash" / "app.py")
        platform.output("crash.once", name="warm", seconds=0.0)
        key, agent, family = platform.key, platform.pids["agent"], descendants(platform.process.pid)
        name, path = pilotlight.call_id(), "/v1/functions/crash.once/calls"
        body = {"id": name, "input": {"name": "last", "seconds": 1.0}}
        last = callers.submit(platform.http.post, path, json=body)
        begun = ("running", "succeeded")
        wait_until(lambda: platform.http.get(f"/v1/calls/{name}").json().get("state") in begun, "the call runs")
        platform.process.terminate()

        answer = last.result().json()
        assert answer["output"] == "last"
        assert platform.process.wait(60.0) == 0
        assert not [pid for pid in family if is_alive(pid)]
        assert not cgroups_of(agent)

    with running(tmp_path) as platform:
        assert platform.key == key
        assert platform.answer("crash.once", name="again", seconds=0.0)["version"] == "crash.once@v1"
        wait_until(lambda: len(receipts(platform)) == 3, "the usage of both runs is folded")
        assert receipts(platform)[answer["id"]] == answer["usage"]["ns"]
        check_no_instant_is_sold_twice(platform)


@pytest.mark.crash
def test_what_was_deployed_survives_the_death_of_all(tmp_path: Path) -> None:
    """The supervisor is killed: all parts die with it, and the next start goes on where they stopped."""
    with running(tmp_path) as platform, ThreadPoolExecutor(1) as callers:
        platform.deploy(APPS / "crash" / "app.py")
        platform.output("crash.again", name="warm", seconds=0.0)
        family = descendants(platform.process.pid)
        lost = callers.submit(platform.call, "crash.again", name="lost", seconds=5.0)
        wait_until(lambda: any(c["running"] for c in platform.containers()), "the call runs")
        platform.process.kill()
        platform.process.wait()

        wait_until(lambda: not [pid for pid in family if is_alive(pid)], "everything dies with the supervisor")
        assert lost.exception() is not None

    with running(tmp_path) as platform:
        assert platform.output("crash.again", name="new", seconds=0.0) == "new"
        check_no_instant_is_sold_twice(platform)
