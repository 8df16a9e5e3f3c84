"""Limits through the whole platform: two gateways, one count."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

import pilotlight
from tests.system.support.platform import Platform
from tests.waiting import wait_until

RATE, BURST = 2, 6


@pytest.fixture
def platform(pair: Platform) -> Platform:
    """A platform with two gateways."""
    wait_until(lambda: all(pair.http.get(f"{url}/readyz").status_code == 200 for url in pair.urls), "both are ready")
    return pair


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
    lines = [
        line
        for text in platform.metrics()
        for line in text.splitlines()
        if line.startswith("pilotlight_limit_permits ")
    ]
    return sum(float(line.split()[1]) for line in lines)


def test_two_gateways_count_what_runs_as_one(platform: Platform) -> None:
    """One call runs at one gateway, so none begins at the other until it has ended."""
    platform.cli("quota", "set", "default", "concurrency=1", "--function", "calls.naps")
    wait_until(lambda: "ratelimit" in call(platform, 0, "naps", seconds=0.0).headers, "it is known")
    with ThreadPoolExecutor(1) as pool:
        name, path = pilotlight.call_id(), f"{platform.urls[0]}/v1/functions/calls.naps/calls"
        long = pool.submit(platform.http.post, path, json={"id": name, "input": {"seconds": 60.0}})
        wait_until(lambda: permits(platform) == 1, "the call is counted")

        refused = call(platform, 1, "naps", seconds=0.0)
        assert (refused.status_code, refused.json()["violated-policies"]) == (429, ["function-concurrency"])
        assert refused.headers["ratelimit"] == '"function-concurrency";r=0'
        assert call(platform, 1, value=1).status_code == 200

        assert platform.http.delete(f"/v1/calls/{name}").is_success
        assert long.result().status_code == 499
    wait_until(lambda: call(platform, 1, "naps", seconds=0.0).status_code == 200, "it has ended")
    platform.cli("quota", "clear", "default", "--function", "calls.naps")


def test_jobs_wait_for_what_two_gateways_count_as_one(platform: Platform) -> None:
    """Jobs of two functions, taken by both gateways, run one after the other; a live call in between is refused."""
    platform.cli("quota", "set", "default", "concurrency=1")
    try:
        wait_until(lambda: policy_holds(platform, '"concurrency";q=1;qu="concurrent-requests"'), "both know the limit")
        first = submit(platform, 0, "naps", seconds=60.0)
        names = [submit(platform, number % 2, ("naps", "metered")[number // 4], seconds=0.2) for number in range(8)]
        wait_until(lambda: call(platform, 0, value=1).status_code == 429, "a live call finds no place")
        assert platform.http.delete(f"/v1/calls/{first}").json()["cancelled"]
        ran = [wait_until(partial(ended, platform, name), f"{name} ends", 60.0) for name in names]
    finally:
        platform.cli("quota", "clear", "default")
    assert [one["state"] for one in ran] == ["succeeded"] * len(ran)
    in_turn = sorted((one["started_at"], one["ended_at"]) for one in ran)
    assert all(ended <= begun for (_, ended), (begun, _) in itertools.pairwise(in_turn))
    wait_until(lambda: policy_holds(platform, ""), "both gateways know that there is no limit")


@pytest.mark.variant
def test_a_map_goes_as_fast_as_its_tenant_may(platform: Platform) -> None:
    """Refused submissions wait as long as they are told, and come again: every input has its answer."""
    platform.cli("quota", "set", "default", "requests_per_s=20", "burst=5")
    try:
        wait_until(lambda: policy_holds(platform, '"requests";q=20;w=1'), "both gateways know the limit")
        with pilotlight.Client(url=platform.url, api_key=platform.key) as client:
            echo = pilotlight.Function.from_name("calls", "echo").options(client=client)
            start = time.monotonic()
            assert list(echo.map(range(60))) == list(range(60))
            assert time.monotonic() - start >= (60 - 5) / 20
    finally:
        platform.cli("quota", "clear", "default")
    wait_until(lambda: policy_holds(platform, ""), "both gateways know that there is no limit")


def submit(platform: Platform, gateway: int, function: str, **arguments: object) -> str:
    """A job stored by one of the gateways; its id."""
    url = f"{platform.urls[gateway]}/v1/functions/calls.{function}/calls"
    answer = platform.http.post(url, json={"input": arguments}, headers={"Prefer": "respond-async"})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def ended(platform: Platform, job: str) -> dict[str, Any] | None:
    """The job, if it has ended."""
    found: dict[str, Any] = platform.http.get(f"/v1/calls/{job}", headers={"Prefer": "wait=5"}).json()
    return found if found["state"] not in ("queued", "running") else None


def test_tokens_count_as_functions_report_them(platform: Platform) -> None:
    """The next call needs as many as the last one took: it is told when there will be."""
    platform.cli("quota", "set", "default", "tokens_per_s=1", "tokens_burst=30")
    try:
        wait_until(lambda: policy_holds(platform, '"tokens";q=30;w=30;qu="tokens"'), "both gateways know the limit")
        prompt = "word " * 24
        answers = [call(platform, 0, "completes", prompt=prompt) for _ in range(3)]

        assert [answer.status_code for answer in answers] == [200, 429, 429]
        assert answers[0].json()["usage"]["units"] == {"prompt_tokens": 24, "completion_tokens": 1}
        refused = answers[1].json()
        assert refused["violated-policies"] == ["tokens"]
        assert "default may use 1 tokens a second, 30 at once" in refused["detail"]
    finally:
        platform.cli("quota", "clear", "default")
    wait_until(lambda: policy_holds(platform, ""), "both gateways know that there is no limit")
