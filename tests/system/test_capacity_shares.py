"""One tenant's calls hold the whole fleet, another has a guarantee: its call is told when to come, or is served."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
NAP_S, TIMEOUT_S = 3.0, 6
ROUNDS = 3
"""Calls that follow each other in each container: without shares the other tenant would wait for all of them."""
HURRY_MS = 1_500.0


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


def deployed(platform: Platform, folder: Path, tenant: str) -> str:
    """Make a tenant with the function; its key."""
    key = make_tenant(platform, tenant)
    source = folder / f"{tenant}.py"
    source.write_text(SOURCE.replace("APP", tenant).replace("NAP", str(TIMEOUT_S)))
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
