"""Sticky users of four real gateways over a ramp: some are killed, some stand still, and nobody goes back."""

from __future__ import annotations

import json
import random
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import pytest

from pilotlight_core.model.rollouts.rollout_record import WHOLE, Sticky
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.rollout_writer import RolloutWriter
from tests.waiting import wait_until

CODE = """
from pilotlight import App, batched

app = App("sticky")


@app.gpu_function(scaledown_window=60.0, min_containers=1, idempotent=True, forecast=False)
@batched(max_batch_size=4, wait_ms=5)
def which(names: list[str]) -> list[int]:
    return [{answer} for _ in names]
"""
USERS, CALLERS, EACH_STEP = 400, 4, 400
WAITING = 60
"""Users whose calls lie at the gateway that stands still."""
STEPS = (500, 2_500, 5_000, WHOLE)


@dataclass(kw_only=True)
class StickyCallers:
    """Each has users of its own, whose calls follow each other at any of the gateways that answer."""

    urls: Sequence[str]
    key: str
    still: int = -1
    """The place of the gateway that stands still; -1: none does."""
    seen: dict[str, int] = field(default_factory=dict)
    """By user, the version that has answered last."""
    back: list[str] = field(default_factory=list)
    """Users who were answered by the old version after the new one."""
    calls: int = 0

    def __post_init__(self) -> None:
        self.over = threading.Event()
        self._lock = threading.Lock()

    def keep_calling(self, number: int) -> None:
        chance, headers = random.Random(number), {"Authorization": f"Bearer {self.key}"}
        with ExitStack() as stack:
            clients = [
                stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=30.0)) for url in self.urls
            ]
            while not self.over.is_set():
                user = f"user-{number + CALLERS * chance.randrange(USERS // CALLERS)}"
                self._call(chance.choice([client for at, client in enumerate(clients) if at != self.still]), user)

    def call_still(self, user: str) -> None:
        """Call the gateway that stands still, and wait until it does no more."""
        headers = {"Authorization": f"Bearer {self.key}"}
        with httpx.Client(base_url=self.urls[self.still], headers=headers, timeout=60.0) as client:
            self._call(client, user)

    def _call(self, client: httpx.Client, user: str) -> None:
        try:
            done = client.post(
                "/v1/functions/sticky.which/calls", json={"input": {"names": user}},
                headers={"Pilotlight-Sticky": user},
            )  # fmt: skip
        except httpx.TransportError:  # it is killed
            return
        if done.status_code == 200:
            self._note(user, int(done.json()["output"]))

    def _note(self, user: str, version: int) -> None:
        with self._lock:
            if version < self.seen.get(user, 0):
                self.back.append(user)
            self.seen[user] = version
            self.calls += 1


@pytest.mark.long
@pytest.mark.timeout(400)
def test_no_user_goes_back_over_a_ramp_though_gateways_die_and_stand_still(tmp_path: Path) -> None:
    """At each step one gateway does not hear of it and another one begins anew; in the end all have the new version."""

    def write(answer: int) -> Path:
        file = tmp_path / "app.py"
        file.write_text(CODE.format(answer=answer))
        return file

    options = ("--extra-gateways", "3", "--cpu-slots", "4", "--blanks", "0")
    with run_platform(tmp_path, *options) as platform, ThreadPoolExecutor(CALLERS + WAITING) as threads:
        platform.deploy(write(1))
        registered = json.loads(platform.cli("deploy", str(write(2)), "--no-traffic", "--json").stdout)
        writer = RolloutWriter(platform=platform, app="sticky")
        writer.begin({"which": registered[0]["functions"][0]["version_id"]}, STEPS[0], Sticky.HEADER)
        callers = StickyCallers(urls=platform.urls, key=platform.key)
        loops = [threads.submit(callers.keep_calling, number) for number in range(CALLERS)]
        try:
            for number, share in enumerate(STEPS):
                callers.still = 1 + number % 3
                killed = f"gateway-{2 + (number + 1) % 3}"
                platform.signal(f"gateway-{1 + callers.still}", signal.SIGSTOP)
                waiting = [threads.submit(callers.call_still, f"user-{user}") for user in range(WAITING)]
                writer.raise_share(share)
                before = platform.kill(killed)
                wanted = callers.calls + EACH_STEP
                wait_until(partial(has_called, callers, wanted), "calls of this step are answered", 60.0)
                platform.signal(f"gateway-{1 + callers.still}", signal.SIGCONT)
                for each in waiting:
                    each.result()
                callers.still = -1
                wait_until(partial(is_back, platform, killed, before), f"{killed} is back", 60.0)
            wait_until(lambda: len(callers.seen) == USERS and set(callers.seen.values()) == {2}, "all are there", 120.0)
        finally:
            callers.over.set()
        for loop in loops:
            loop.result()

    assert callers.back == []


def is_back(platform: Platform, part: str, before: int) -> bool:
    return platform.pids.get(part, before) != before


def has_called(callers: StickyCallers, wanted: int) -> bool:
    return callers.calls >= wanted
