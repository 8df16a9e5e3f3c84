"""One tenant's calls hold the whole fleet, another has a guarantee: its call is told when to come, or is served."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.system.support.platform import Platform, make_tenant
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

SOURCE = """\
import time

import pilotlight

app = pilotlight.App("APP")


@app.gpu_function(gpu="H100", memory="256MiB", timeout=NAP, scaledown_window=60, max_containers=2)
def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds
"""
NAP_S, TIMEOUT_S = 4.0, 7
ROUNDS = 3
"""Calls that follow each other in each container: without shares the other tenant would wait for all of them."""
HURRY_MS = 2_000.0
"""Half a nap: it is over before the first place is free, and is long enough to hear why."""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """Two GPUs."""
    options = ("--fake-gpus", "2xH100", "--cpu-slots", "1", "--blanks", "0")
    with run_platform(tmp_path_factory.mktemp("shares"), *options) as running:
        yield running


def test_a_guarantee_is_served_by_what_others_give_back(platform: Platform, tmp_path: Path) -> None:
    """A call with too little time hears at once why, and when to come; one with enough is served, and nobody's call is
    killed for it.
    """
    crowd, firm = deployed(platform, tmp_path, "crowd"), deployed(platform, tmp_path, "firm")
    platform.cli("quota", "set", "firm", "--guarantee", "50%")
    assert "50%" in platform.cli("quota", "show", "firm").stdout
    refused = platform.cli("quota", "set", "crowd", "--guarantee", "51%", check=False)
    assert "50 % are left" in " ".join(refused.stderr.split())

    with ThreadPoolExecutor(2) as callers:
        held = [callers.submit(keep_napping, platform, crowd) for _ in range(2)]
        wait_until(lambda: running(platform, crowd) == 2, "both GPUs have a call")

        hurried = called(platform, firm, "firm", 0.01, deadline_ms=HURRY_MS)
        served = called(platform, firm, "firm", 0.01, deadline_ms=60_000.0)
        during = [loop.done() for loop in held]
        answers = [answer for loop in held for answer in loop.result()]

    assert (hurried.status_code, hurried.json()["code"]) == (503, "no_capacity"), hurried.text
    assert "a place is expected in" in hurried.json()["detail"]
    assert 1 <= int(hurried.headers["retry-after"]) <= TIMEOUT_S + 2
    assert served.status_code == 200, served.text
    assert not any(during), "the place was free because the others had ended"
    assert [answer.status_code for answer in answers] == [200] * (2 * ROUNDS), [answer.text for answer in answers]


@pytest.mark.long
def test_shares_follow_weights_and_leave_a_guaranteed_floor(tmp_path: Path) -> None:
    """Five GPUs: one is a floor within a guarantee, two tenants want all others and have them by their weights. Then
    another one comes with a guarantee, and has it.
    """
    options = ("--fake-gpus", "5xH100", "--cpu-slots", "1", "--blanks", "0")
    with run_platform(tmp_path, *options) as platform:
        platform.cli("quota", "set-tier", "light", "weight=1", "priority_ceiling=interactive")
        platform.cli("quota", "set-tier", "heavy", "weight=3", "priority_ceiling=interactive")
        keeper = deployed(platform, tmp_path, "keeper", tier="light", options="min_containers=1, max_containers=5")
        platform.cli("quota", "set", "keeper", "--guarantee", "20%")
        floor = wait_until(lambda: held(platform, keeper), "the floor is there")
        over = threading.Event()
        with ThreadPoolExecutor(15) as callers:
            loops = list[Future[set[int]]]()

            def crowd(tenant: str, guarantee: str = "") -> str:
                key = deployed(platform, tmp_path, tenant, tier=tenant, options="max_containers=5")
                if guarantee:
                    platform.cli("quota", "set", tenant, "--guarantee", guarantee)
                loops.extend(callers.submit(nap_until, over, platform, key, tenant) for _ in range(5))
                return key

            try:
                light = crowd("light")
                wait_until(lambda: len(held(platform, light)) == 4, "who comes first has what is free")
                heavy = crowd("heavy")
                wait_until(lambda: shares(platform, light, heavy) == [1, 3], "they share by their weights")
                platform.cli("quota", "set-tier", "firm", "weight=0.01", "priority_ceiling=interactive")
                firm = crowd("firm", "20%")
                wait_until(lambda: len(held(platform, firm)) == 1, "the guarantee is there")
                wait_until(lambda: sum(shares(platform, light, heavy)) == 3, "of what the others had")
                assert held(platform, keeper) == floor
            finally:
                over.set()
        assert {status for loop in loops for status in loop.result()} == {200}


def nap_until(over: threading.Event, platform: Platform, key: str, app: str) -> set[int]:
    """One short call after the other; how they ended."""
    found = set()
    while not over.is_set():
        found.add(called(platform, key, app, 0.5).status_code)
    return found


def held(platform: Platform, key: str) -> set[str]:
    """A tenant's containers that do not end."""
    with platform.as_holder_of(key) as client:
        listed = client.get("/v1/containers").json()["containers"]
    return {container["id"] for container in listed if container["state"] != "draining"}


def shares(platform: Platform, *keys: str) -> list[int]:
    """How many containers tenants have."""
    return [len(held(platform, key)) for key in keys]


def deployed(
    platform: Platform, folder: Path, tenant: str, *, tier: str = "paid", options: str = "max_containers=2"
) -> str:
    """Make a tenant with the function; its key."""
    key = make_tenant(platform, tenant, tier)
    source = folder / f"{tenant}.py"
    made = SOURCE.replace("APP", tenant).replace("NAP", str(TIMEOUT_S)).replace("max_containers=2", options)
    source.write_text(made)
    platform.cli("deploy", str(source), key=key)
    return key


def keep_napping(platform: Platform, key: str) -> list[httpx.Response]:
    """One call after the other."""
    return [called(platform, key, "crowd", NAP_S) for _ in range(ROUNDS)]


def called(platform: Platform, key: str, app: str, seconds: float, **options: float) -> httpx.Response:
    with platform.as_holder_of(key) as client:
        body = {"input": {"seconds": seconds}} | options
        return client.post(f"/v1/functions/{app}.nap/calls", json=body, timeout=120.0)


def running(platform: Platform, key: str) -> int:
    """Calls that run in a tenant's containers."""
    with platform.as_holder_of(key) as client:
        return sum(container["running"] for container in client.get("/v1/containers").json()["containers"])
