"""Limits through the whole platform: two gateways, one count."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.system.conftest import APPS
from tests.system.platform import Platform, wait_until
from tests.system.platform import platform as run_platform

RATE, BURST = 2, 6


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform with two gateways."""
    folder, env = tmp_path_factory.mktemp("limits"), {"PILOTLIGHT_PREIMPORT": "numpy"}
    with run_platform(folder, "--extra-gateways", "1", "--cpu-slots", "2", "--blanks", "1", env=env) as running:
        running.deploy(APPS / "calls" / "app.py")
        yield running


def call(platform: Platform, gateway: int, function: str = "echo", **arguments: object) -> httpx.Response:
    """A call through one of the gateways."""
    url = f"{platform.urls[gateway]}/v1/functions/calls.{function}/calls"
    return platform.http.post(url, json={"input": arguments})


def policy_holds(platform: Platform, policy: str) -> bool:
    """Whether both gateways know it."""
    return all(call(platform, number, value=1).headers.get("ratelimit-policy", "") == policy for number in (0, 1))


def test_two_gateways_count_as_one(platform: Platform) -> None:
    """Asked of both at once, no more is let in than burst and rate allow; who waits as told is let in."""
    platform.cli("quota", "set", "default", f"requests_per_s={RATE}", f"burst={BURST}")
    try:
        wait_until(lambda: policy_holds(platform, f'"requests";q={BURST};w=3'), "both gateways know the limit")
        start = time.monotonic()
        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda number: call(platform, number % 2, value=number), range(40)))
        took = time.monotonic() - start

        let_in = sum(answer.status_code == 200 for answer in answers)
        refused = [answer for answer in answers if answer.status_code == 429]
        assert let_in + len(refused) == len(answers)
        assert let_in <= BURST + RATE * took
        assert all(answer.json()["violated-policies"] == ["requests"] for answer in refused)

        time.sleep(max(int(answer.headers["retry-after-ms"]) for answer in refused) / 1000)
        assert call(platform, 1, value=1).status_code == 200
    finally:
        platform.cli("quota", "clear", "default")
    wait_until(lambda: policy_holds(platform, ""), "both gateways know that there is no limit")


def permits(platform: Platform) -> float:
    """Running calls that are counted, at all gateways."""
    shown = [platform.http.get(f"{url}/metrics").text for url in platform.urls]
    lines = [line for text in shown for line in text.splitlines() if line.startswith("pilotlight_limit_permits ")]
    return sum(float(line.split()[1]) for line in lines)


def test_two_gateways_count_what_runs_as_one(platform: Platform) -> None:
    """One call runs at one gateway, so none begins at the other until it has ended."""
    platform.cli("quota", "set", "default", "concurrency=1", "--function", "calls.naps")
    wait_until(lambda: "ratelimit" in call(platform, 0, "naps", seconds=0.0).headers, "it is known")
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(call, platform, 0, "naps", seconds=2.0)
        wait_until(lambda: permits(platform) == 1, "the call is counted")

        refused = call(platform, 1, "naps", seconds=0.0)
        assert (refused.status_code, refused.json()["violated-policies"]) == (429, ["function-concurrency"])
        assert refused.headers["ratelimit"] == '"function-concurrency";r=0'
        assert call(platform, 1, value=1).status_code == 200

        assert long.result().status_code == 200
    assert call(platform, 1, "naps", seconds=0.0).status_code == 200
    platform.cli("quota", "clear", "default", "--function", "calls.naps")
