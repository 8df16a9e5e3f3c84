"""Capacity is lost under load: admission measures new calls against what is left, at once and not when they fail.

Two nodes of one slot each run one function, with calls always waiting. What the home thinks of its capacity shows in
Retry-After: a call that cannot make it is told when its turn would have come, and that is twice as late when half of
the capacity is gone. Supervisor and controller stand still meanwhile, so that nothing is replaced.
"""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.processes import descendants, is_alive
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(150)]
NAP_S = 0.8
WAITING = 10
"""Callers, each with one call: two run, or one, and the others wait."""
HOPELESS_MS = 500.0
"""Less than one nap: such a call is refused at once, and told when its turn would have come."""
KILLED_WITHIN_S = 2.0
FROZEN_WITHIN_S = 4.0
SAID_S = 0.3
"""For a probe to be asked and answered."""
BACK_WITHIN_S = PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """Two nodes of one slot."""
    options = ("--extra-agents", "1", "--cpu-slots", "1", "--blanks", "0")
    with run_platform(tmp_path_factory.mktemp("capacity"), *options) as running:
        running.deploy(APPS / "naps" / "app.py")
        yield running


def ready_nodes(platform: Platform) -> set[str]:
    """The nodes on which the function has a container that is ready."""
    return {container["node"] for container in platform.containers("naps") if container["state"] == "ready"}


@contextmanager
def backlog(platform: Platform) -> Iterator[None]:
    """Calls that wait all the time, until the block ends."""
    over = False

    def keep_calling(_: int) -> None:
        while not over:
            platform.call("naps.nap", seconds=NAP_S)

    with ThreadPoolExecutor(WAITING) as callers:
        loops = [callers.submit(keep_calling, number) for number in range(WAITING)]
        try:
            yield
        finally:
            over = True
    for loop in loops:
        loop.result()


def told_wait(platform: Platform) -> float | None:
    """When the turn of a call would come that came now, in seconds, as its refusal says; None: it was let in."""
    body = {"input": {"seconds": 0.0}, "deadline_ms": HOPELESS_MS}
    answer = platform.http.post("/v1/functions/naps.nap/calls", json=body)
    told = answer.headers.get("retry-after-ms")
    return float(told) / 1000.0 if told is not None and answer.json()["code"] == "queue_full" else None


def usual_wait(platform: Platform) -> float:
    """The median of twenty waits told, once the pace is known: with both nodes at work."""
    wait_until(lambda: (told_wait(platform) or 0.0) > NAP_S * WAITING / 4, "calls wait")
    end = time.monotonic() + 4 * NAP_S
    waits = []
    while time.monotonic() < end:
        if (told := told_wait(platform)) is not None:
            waits.append(told)
    return statistics.median(waits)


def kill_agent(platform: Platform) -> None:
    """Without its node, whose containers end with it."""
    os.kill(platform.pids["agent-2"], signal.SIGKILL)


def kill_container(platform: Platform) -> None:
    """The guest of one of them: the youngest process of a sandbox."""
    guest = max(pid for pid in descendants(platform.pids["agent-2"]))
    os.kill(guest, signal.SIGKILL)
    wait_until(lambda: not is_alive(guest), "the guest dies")


def freeze_agent(platform: Platform) -> None:
    """It goes on when the test is over."""
    os.kill(platform.pids["agent-2"], signal.SIGSTOP)


@pytest.mark.parametrize(
    ("happens", "within_s"),
    [
        (kill_agent, PATIENCE_S),
        pytest.param(kill_agent, KILLED_WITHIN_S, marks=pytest.mark.long),
        pytest.param(kill_container, KILLED_WITHIN_S, marks=pytest.mark.variant),
        pytest.param(freeze_agent, FROZEN_WITHIN_S, marks=pytest.mark.variant),
    ],
)
def test_admission_tightens_when_capacity_is_lost_and_loosens_when_it_is_back(
    platform: Platform, happens: Callable[[Platform], None], within_s: float
) -> None:
    """The wait that refused calls are told is that of one node soon after the other's death, and again of two later."""
    wait_until(lambda: len(ready_nodes(platform)) == 2, "a container is ready on each node")
    agent, supervisor, controller = platform.pids["agent-2"], platform.process.pid, platform.pids["controller"]
    with backlog(platform):
        usual = usual_wait(platform)
        for pid in (supervisor, controller):
            os.kill(pid, signal.SIGSTOP)
        try:
            happens(platform)
            lost = time.monotonic()
            wait_until(lambda: (told_wait(platform) or 0.0) > 1.5 * usual, "admission tightens", within_s + SAID_S)
            assert time.monotonic() - lost <= within_s + SAID_S
        finally:
            for pid in (controller, supervisor):
                os.kill(pid, signal.SIGCONT)
            if is_alive(agent):
                os.kill(agent, signal.SIGCONT)
        wait_until(lambda: 0.0 < (told_wait(platform) or 0.0) < 1.25 * usual, "admission loosens again", BACK_WITHIN_S)
