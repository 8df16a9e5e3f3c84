"""Idempotency keys over two gateways of a whole platform, one of which is killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pytest

import pilotlight
from pilotlight import Function
from tests.system.support.platform import Platform
from tests.waiting import wait_until

pytestmark = pytest.mark.crash
LONG_S = 8.0
"""A call takes so long: on a busy machine two are begun before the first has ended."""


@pytest.fixture
def platform(pair: Platform) -> Platform:
    """Two gateways, and the app whose functions say when they run."""
    return pair


@pytest.fixture
def other(platform: Platform) -> Iterator[httpx.Client]:
    """A client of the second gateway."""
    headers = {"Authorization": f"Bearer {platform.key}"}
    with httpx.Client(base_url=platform.urls[1], headers=headers, timeout=60.0) as client:
        wait_until(lambda: client.get("/readyz").status_code == 200, "the second gateway is ready")
        yield client


def call(client: httpx.Client, function: str, name: str, seconds: float, *, wait: int = 0) -> httpx.Response:
    """A call whose key is its name."""
    headers = {"Idempotency-Key": name, "Prefer": f"wait={wait}"}
    body = {"input": {"name": name, "seconds": seconds}}
    return client.post(f"/v1/functions/crash.{function}/calls", json=body, headers=headers)


def runs(platform: Platform, name: str) -> int:
    """How often the call said that it ran."""
    return Counter(line["text"] for line in platform.logs("crash"))[f"ran {name}"]


def begun(platform: Platform, callers: ThreadPoolExecutor, function: str, name: str) -> Future[httpx.Response]:
    """A call at the first gateway that has begun, and takes a while."""
    sent = callers.submit(call, platform.http, function, name, LONG_S)
    wait_until(lambda: runs(platform, name) == 1, f"{name} runs")
    return sent


def test_both_gateways_give_the_first_answer(platform: Platform, other: httpx.Client) -> None:
    """One waits for the other's call, and both repeat it afterwards."""
    with ThreadPoolExecutor(1) as callers:
        first = begun(platform, callers, "once", "both")
        busy = call(other, "once", "both", LONG_S)
        waited = call(other, "once", "both", LONG_S, wait=30)
        again = call(platform.http, "once", "both", LONG_S)

    assert (busy.status_code, busy.json()["code"]) == (409, "idempotency_key_in_use")
    assert waited.content == again.content == first.result().content
    assert waited.headers["idempotent-replayed"] == again.headers["idempotent-replayed"] == "true"
    assert runs(platform, "both") == 1


def test_a_killed_gateways_calls_are_lost_or_run_again_if_they_may(platform: Platform, other: httpx.Client) -> None:
    """The other gateway says so once the dead one's lease has expired; what may not run twice does not."""
    with ThreadPoolExecutor(2) as callers:
        sent = [begun(platform, callers, "once", "lost"), begun(platform, callers, "again", "again")]
        platform.kill("gateway")
        lost = call(other, "once", "lost", LONG_S, wait=30)
        again = call(other, "again", "again", LONG_S, wait=30)
        assert all(isinstance(one.exception(), httpx.TransportError) for one in sent)

    assert (lost.status_code, lost.json()["code"]) == (410, "call_lost")
    assert (again.status_code, again.json()["output"]) == (200, "again")
    assert "idempotent-replayed" not in again.headers
    wait_until(platform.is_ready, "the first gateway is back")
    assert runs(platform, "lost") == 1
    assert call(platform.http, "again", "again", LONG_S).headers["idempotent-replayed"] == "true"


def test_the_client_survives_a_killed_gateway(platform: Platform) -> None:
    """With a key, its attempt is sent again when the connection breaks; an idempotent function answers in the end."""
    wait_until(platform.is_ready, "the gateway is ready")
    with pilotlight.Client(url=platform.url, api_key=platform.key) as client, ThreadPoolExecutor(1) as callers:
        function = Function.from_name("crash", "again").options(client=client, idempotency_key="auto")
        sent = callers.submit(function.remote, name="client", seconds=2.0)
        wait_until(lambda: runs(platform, "client") == 1, "the call runs")
        platform.kill("gateway")

        assert sent.result(60.0) == "client"
