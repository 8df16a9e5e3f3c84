"""Rollouts on a real platform: a new version that fails goes back by itself, one that does not is promoted."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.system.support.platform import Platform
from tests.waiting import wait_until

CODE = """
import time

from pilotlight import App

app = App("shop")


@app.gpu_function(min_containers=1, max_containers=1, {tries}, forecast=False)
def price(item: str = "") -> int:
    time.sleep({seconds})
    {body}
"""
WORKS, FAILS, WORKS_TOO = "return 1", "print('no price', flush=True); raise ValueError('no price')", "return 1 + 0"


def write_app(folder: Path, body: str, seconds: float = 0.02, tries: str = "idempotent=True, retries=0") -> str:
    file = folder / "app.py"
    file.write_text(CODE.format(body=body, seconds=seconds, tries=tries))
    return str(file)


@pytest.fixture(autouse=True)
def _stopped(platform: Platform) -> Iterator[None]:
    """The tests of the next file find all slots free."""
    yield
    assert platform.http.post("/v1/apps/shop/stop").is_success


@contextmanager
def calling(platform: Platform) -> Iterator[list[Any]]:
    """Two callers, until the block ends; what they were answered that is not the old version's answer."""
    wrong: list[Any] = []
    over = threading.Event()

    def call() -> None:
        headers = {"Authorization": f"Bearer {platform.key}"}
        with httpx.Client(base_url=platform.urls[0], headers=headers, timeout=60.0) as client:
            while not over.is_set():
                done = client.post("/v1/functions/shop.price/calls", json={"input": {"item": "x"}})
                if done.status_code != 200 or done.json()["output"] != 1:
                    wrong.append(done.text)

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    try:
        yield wrong
    finally:
        over.set()
        for caller in callers:
            caller.join()


def rollout_of(platform: Platform) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(platform.cli("rollout", "status", "shop", "--json").stdout)
    return found


def test_a_worse_version_goes_back(platform: Platform, tmp_path: Path) -> None:
    """`deploy --rollout` has the evidence say it, in sentences; nobody who calls sees an error."""
    platform.deploy(Path(write_app(tmp_path, WORKS)))
    with calling(platform) as wrong:
        words = ("deploy", write_app(tmp_path, FAILS), "--rollout", "--steps", "50,100", "--json")
        begun = json.loads(platform.cli(*words).stdout)
        assert begun["rollouts"][0]["state"] == "planned"
        wait_until(lambda: rollout_of(platform)["state"] == "rolled_back", "it goes back", 30.0)
    back = rollout_of(platform)
    assert back["verdict"] == "regressed"
    assert back["evidence"] >= 100
    assert "The new version is worse" in back["reason"]
    assert wrong == []


def test_an_equal_version_is_promoted(platform: Platform, tmp_path: Path) -> None:
    """`deploy --wait` ends when it is, and the history says by which rollout."""
    platform.deploy(Path(write_app(tmp_path, WORKS)))
    words = ("--steps", "50,100", "--every", "1s", "--bake", "1s", "--pairs", "25")
    with calling(platform) as wrong:
        done = platform.cli("deploy", write_app(tmp_path, WORKS_TOO), "--rollout", *words, "--wait")
    assert "Promoted" in done.stderr
    history = json.loads(platform.cli("app", "history", "shop", "--json").stdout)
    assert history[-1]["message"].startswith("rollout ")
    assert wrong == []


LOADED_S, CALLERS, EACH_S = 240.0, 20, 0.1
"""A hundredth of what a busy machine lets through may take minutes to fail three times."""
SEEN, BACK_S = 5, 1.0


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("tries", ["idempotent=True, retries=0", "retries=2", "idempotent=True, retries=2"])
def test_a_canary_that_always_fails_is_seen_by_few(platform: Platform, tmp_path: Path, tries: str) -> None:
    """At one percent of 200 calls a second: five callers at most see anything but the old version's answer, and nothing
    is split any more a second after the third failure. A call that it has failed it does not try again, so that each
    failure is one of another call.
    """
    platform.deploy(Path(write_app(tmp_path, WORKS, 0.0, tries)))
    canary = write_app(tmp_path, FAILS, 0.0, tries)
    wrong: list[Any] = []
    over = threading.Event()

    def call() -> None:
        headers = {"Authorization": f"Bearer {platform.key}"}
        with httpx.Client(base_url=platform.urls[0], headers=headers, timeout=60.0) as client:
            while not over.is_set():
                began = time.monotonic()
                done = client.post("/v1/functions/shop.price/calls", json={"input": {"item": "x"}})
                if done.status_code != 200 or done.json()["output"] != 1:
                    wrong.append(done.text)
                over.wait(max(0.0, EACH_S - (time.monotonic() - began)))

    callers = [threading.Thread(target=call) for _ in range(CALLERS)]
    for caller in callers:
        caller.start()
    try:
        platform.cli("deploy", canary, "--rollout", "--steps", "1,100", "--pairs", "0")
        wait_until(lambda: rollout_of(platform)["state"] in ("rolling_back", "rolled_back"), "it goes back", LOADED_S)
    finally:
        over.set()
        for caller in callers:
            caller.join()
    back = rollout_of(platform)
    assert back["verdict"] == "regressed"
    assert len(wrong) <= SEEN
    failures = sorted(failed_calls(platform, back["started_at"]))
    assert len(failures) > 1
    assert len({call for _, call in failures}) == len(failures)
    third = failures[2][0] if len(failures) > 2 else back["since"]
    assert back["since"] - third <= BACK_S
    assert [at - third for at, _ in failures if at > third + BACK_S] == [], "nothing of it runs later, as it has logged"


def failed_calls(platform: Platform, since: float) -> Iterator[tuple[float, str]]:
    """When the new version has failed which call, by its log, in unix seconds."""
    for line in platform.logs("shop", "price"):
        if line["text"] == "no price" and line["at"] >= since:
            yield float(line["at"]), str(line["call"])


SERVES = """
import asyncio
import itertools

from pilotlight import App, concurrent

app = App("shop")
numbers = itertools.count(1)


@app.gpu_function(min_containers=1, max_containers=1, timeout=60.0, forecast=False)
@concurrent(max_inputs=64)
async def price(item: str = "") -> int:
    await asyncio.sleep({seconds})
    return 1
"""
HANGS = "0.02 if next(numbers) <= 24 else 100.0"


@pytest.mark.long
def test_a_canary_whose_calls_hang_goes_back_before_their_time_is_up(platform: Platform, tmp_path: Path) -> None:
    """By what gateways tell of calls that run: no caller's call has ended otherwise than well by then."""
    file = tmp_path / "app.py"
    file.write_text(SERVES.format(seconds="0.02"))
    platform.deploy(file)
    file.write_text(SERVES.format(seconds=HANGS))

    async def call(client: httpx.AsyncClient, wrong: list[str]) -> None:
        while not wrong:
            done = await client.post("/v1/functions/shop.price/calls", json={"input": {}})
            if done.status_code != 200:
                wrong.append(done.text)
            await asyncio.sleep(0.2)

    async def until_back() -> list[str]:
        wrong: list[str] = []
        headers = {"Authorization": f"Bearer {platform.key}"}
        async with httpx.AsyncClient(base_url=platform.urls[0], headers=headers, timeout=120.0) as client:
            callers = [asyncio.create_task(call(client, wrong)) for _ in range(48)]
            words = ("deploy", str(file), "--rollout", "--steps", "50,100", "--pairs", "0", "--json")
            await asyncio.to_thread(platform.cli, *words)
            while not wrong:
                if (await asyncio.to_thread(rollout_of, platform))["state"] in ("rolling_back", "rolled_back"):
                    break
                await asyncio.sleep(0.5)
            for caller in callers:
                caller.cancel()
            return wrong

    assert asyncio.run(until_back()) == []
    back = rollout_of(platform)
    assert back["verdict"] == "regressed"
    assert back["evidence"] >= 100
