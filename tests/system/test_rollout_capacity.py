"""A rollout on a fleet that is full: it waits, takes nothing from anybody, and goes back without a new start."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.system.support.platform import Platform, make_tenant
from tests.system.support.platform import platform as run_platform
from tests.system.test_rollouts import WORKS, WORKS_TOO, calling, rollout_of, write_app
from tests.waiting import wait_until

OTHERS = """
import time

from pilotlight import App

app = App("others")


@app.gpu_function(min_containers=1, max_containers=1, forecast=False)
def nap() -> int:
    time.sleep(0.2)
    return 1
"""


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with run_platform(tmp_path, "--cpu-slots", "2", "--blanks", "0") as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(300)
def test_on_a_full_fleet_a_rollout_is_held_and_takes_nothing_from_anybody(platform: Platform, tmp_path: Path) -> None:
    """One container is the old version's, the other one another tenant's: both are the same ones in the end, and all
    calls were answered as ever.
    """
    key = make_tenant(platform, "other")
    others = tmp_path / "others.py"
    others.write_text(OTHERS)
    platform.cli("deploy", str(others), key=key)
    platform.deploy(Path(write_app(tmp_path, WORKS)))
    wait_until(lambda: len(running(platform, key)) == 2, "the fleet is full", 60.0)
    before, over = running(platform, key), threading.Event()
    with ThreadPoolExecutor(1) as callers, calling(platform) as wrong:
        naps = callers.submit(keep_napping, platform, key, over)
        try:
            words = ("--rollout", "--steps", "50,100", "--pairs", "0")
            platform.cli("deploy", write_app(tmp_path, WORKS_TOO), *words)
            wait_until(lambda: rollout_of(platform)["held"] == "no_capacity", "it is held", 60.0)
            held = rollout_of(platform)
            platform.cli("app", "rollback", "shop")
            wait_until(lambda: rollout_of(platform)["state"] == "rolled_back", "it is back", 60.0)
        finally:
            over.set()
    assert (held["share"], held["state"]) == (0, "starting")
    assert running(platform, key) == before, "no container has gone, and none is new"
    assert (wrong, set(naps.result())) == ([], {200})
    assert rollout_of(platform)["reason"].startswith("called back by")
    told = json.loads(platform.cli("events", "--kind", "rollout", "--json").stdout)["events"]
    kinds = [event["kind"] for event in told]
    assert [kinds.count(kind) for kind in ("rollout.started", "rollout.held", "rollout.rolled_back")] == [1, 1, 1]


def running(platform: Platform, key: str) -> set[str]:
    """All containers of both tenants."""
    with platform.as_holder_of(key) as client:
        theirs = client.get("/v1/containers").json()["containers"]
    return {one["id"] for one in [*theirs, *platform.containers("shop")] if one["state"] != "draining"}


def keep_napping(platform: Platform, key: str, over: threading.Event) -> list[int]:
    with platform.as_holder_of(key) as client:
        found = []
        while not over.is_set():
            found.append(client.post("/v1/functions/others.nap/calls", json={"input": {}}).status_code)
    return found
