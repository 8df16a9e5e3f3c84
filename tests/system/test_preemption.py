"""A node that is taken away in the middle of everything: who calls does not notice, and the node takes work again."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.system.support.events import events_of
from tests.system.support.ledger import check_no_instant_is_sold_twice, rows
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

AGENTS = {"local": "agent", "local-2": "agent-2"}
"""Node -> its agent's process."""
NOTICE_S = 25.0
SOURCE = """\
import time
from collections.abc import Iterator

import pilotlight

app = pilotlight.App("taken")


@app.gpu_function(memory="64MiB", max_containers=4, scaledown_window=60, timeout=60)
def work(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@app.gpu_function(memory="64MiB", max_containers=1, scaledown_window=60, timeout=60)
def count(numbers: int, seconds: float) -> Iterator[int]:
    for number in range(numbers):
        time.sleep(seconds)
        yield number


@app.gpu_function(memory="64MiB", max_containers=2, scaledown_window=60, timeout=60, idempotent=True)
def again(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@app.gpu_function(memory="64MiB", max_containers=2, scaledown_window=60, timeout=60, resumable=True)
def tell(numbers: int, seconds: float) -> Iterator[int]:
    told = pilotlight.resume(0)
    while told < numbers:
        time.sleep(seconds)
        yield told
        told += 1
        pilotlight.checkpoint(told)
"""


class Drill:
    """A platform of two nodes, whose notices are files."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        self.platform = platform
        self.folder = folder

    def node_of(self, function: str) -> str:
        """The node that has a ready container of it."""

        def look() -> str | None:
            found = [each for each in self.platform.containers("taken") if each["function"] == function]
            return next((each["node"] for each in found if each["state"] == "ready"), None)

        return str(wait_until(look, f"{function} has a container"))

    def node_that_runs(self, function: str) -> str:
        """The node of the container that runs a call of it: a function may have ready ones on both."""

        def look() -> str | None:
            found = [each for each in self.platform.containers("taken") if each["function"] == function]
            return next((each["node"] for each in found if each["running"]), None)

        return str(wait_until(look, f"{function} runs"))

    def give_notice(self, node: str, seconds: float = NOTICE_S) -> float:
        """The node is taken away so soon; returns when."""
        deadline = time.time() + seconds
        beside = self.folder / "new"
        beside.write_text(json.dumps({"deadline": deadline, "reason": "a drill"}))
        beside.replace(self.folder / f"{node}.json")
        return deadline

    def take_back(self, node: str) -> None:
        """The node is there again."""
        (self.folder / f"{node}.json").unlink()
        wait_until(lambda: not self.listed(node)["draining"], f"{node} takes work again")

    def listed(self, node: str) -> dict[str, Any]:
        found = self.platform.http.get("/v1/nodes").json()["nodes"]
        return next((each for each in found if each["node"] == node), {"draining": True})

    def wait_ended(self, node: str, agent: int) -> None:
        """Until the node drains, and its agent's process has ended."""
        wait_until(lambda: self.listed(node)["draining"], f"{node} drains")
        wait_until(lambda: not _runs(agent), "its agent ends")

    def batch_over(self, batch: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            answer = self.platform.http.get(f"/v1/batches/{batch}")
            found: dict[str, Any] = answer.json()
            is_over = answer.status_code == 200 and found["state"] in ("completed", "cancelled", "failed")
            return found if is_over else None

        return wait_until(look, "the batch is over")

    def pid(self, node: str) -> int:
        return self.platform.pids[AGENTS[node]]

    def submitted(self, count: int, seconds: float) -> list[str]:
        """Jobs of `work`."""
        headers = {"Prefer": "respond-async"}
        body = {"input": {"seconds": seconds}}
        path = "/v1/functions/taken.work/calls"
        return [self.platform.http.post(path, json=body, headers=headers).json()["id"] for _ in range(count)]

    def ended(self, job: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            found: dict[str, Any] = self.platform.http.get(f"/v1/calls/{job}", headers={"Prefer": "wait=5"}).json()
            return found if found["state"] not in ("queued", "running") else None

        return wait_until(look, f"{job} ends")


@pytest.fixture(scope="module")
def drill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drill]:
    """Two nodes of four slots."""
    folder = tmp_path_factory.mktemp("preemption")
    (folder / "notices").mkdir()
    options = ("--extra-agents", "1", "--cpu-slots", "4", "--blanks", "1", "--notice-dir", str(folder / "notices"))
    with run_platform(folder, *options) as running:
        (folder / "taken.py").write_text(SOURCE)
        running.deploy(folder / "taken.py")
        yield Drill(running, folder / "notices")


def test_nobody_notices_that_a_node_is_taken_away(drill: Drill, tmp_path: Path) -> None:
    """Calls, a stream, jobs and a batch under way: none fails, and the agent has ended before the deadline.

    Then the node is back, and the other one is taken away: the work goes to the first.
    """
    platform = drill.platform
    drill.platform.output("taken.work", seconds=0.0)
    for _ in range(2):
        with ThreadPoolExecutor(8) as callers:
            node = drill.node_of("work")
            agent = drill.pid(node)
            stop = threading.Event()
            answers = [callers.submit(_call_until, platform, stop) for _ in range(4)]
            stream = callers.submit(lambda: list(events_of(platform, "taken.count", numbers=30, seconds=0.1)))
            drill.node_of("count")
            jobs = drill.submitted(12, 0.3)
            batch = _batch(platform, tmp_path, 20)
            deadline = drill.give_notice(node)
            drill.wait_ended(node, agent)
            assert time.time() < deadline
            assert all(drill.ended(job)["state"] == "succeeded" for job in jobs)
            assert [drill.ended(job)["attempts"] for job in jobs] == [1] * len(jobs)
            stop.set()
            outcomes = [status for answer in answers for status in answer.result()]
            assert set(outcomes) == {200}, outcomes
            events = stream.result()
            assert [each.data["value"] for each in events if each.name == "chunk"] == list(range(30)), events[-1]
            done = drill.batch_over(batch)
            assert (done["state"], done["counts"]["succeeded"]) == ("completed", 20), done
            assert {each["node"] for each in platform.containers("taken")} == set(AGENTS) - {node}
            drill.take_back(node)
    check_no_instant_is_sold_twice(platform)


def test_a_call_that_does_not_fit_is_run_again_elsewhere_at_once(drill: Drill) -> None:
    """It may run twice, and is paid once."""
    platform = drill.platform
    with ThreadPoolExecutor(1) as callers:
        call = callers.submit(platform.answer, "taken.again", seconds=4.0)
        node = drill.node_that_runs("again")
        agent = drill.pid(node)
        drill.give_notice(node, 4.0)
        answer = call.result()
    assert answer["output"] == 4.0
    assert answer["usage"]["attempts"] == 2
    query = "SELECT DISTINCT outcome, fault FROM receipt_line WHERE call = ? AND outcome != '' ORDER BY outcome"
    lines = wait_until(
        lambda: (found := rows(platform, query, answer["id"])) and len(found) > 1 and found, "the ledger has both"
    )
    assert lines == [("died", "platform"), ("ok", "none")]
    drill.wait_ended(node, agent)
    drill.take_back(node)


def test_a_resumable_stream_that_does_not_fit_goes_on_elsewhere(drill: Drill) -> None:
    """It loses no event, and its caller hears that it moves."""
    with ThreadPoolExecutor(1) as callers:
        stream = callers.submit(lambda: list(events_of(drill.platform, "taken.tell", numbers=80, seconds=0.1)))
        node = drill.node_that_runs("tell")
        agent = drill.pid(node)
        drill.give_notice(node, 4.0)
        events = stream.result()
    assert [each.data["value"] for each in events if each.name == "chunk"] == list(range(80)), events[-1]
    assert "moving" in [each.data["name"] for each in events if each.name == "stage"]
    drill.wait_ended(node, agent)
    drill.take_back(node)


def test_a_node_that_is_gone_without_a_word_is_found_by_its_silence(drill: Drill) -> None:
    """kill -9: its call fails as one whose container died, neither the answer nor the ledger says more; others run."""
    platform = drill.platform
    with ThreadPoolExecutor(1) as callers:
        call = callers.submit(platform.call, "taken.work", seconds=30.0)
        os.kill(drill.pid(drill.node_that_runs("work")), signal.SIGKILL)
        answer = call.result()
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (502, "container_died"), problem
    assert "usage" not in problem
    lines = rows(platform, "SELECT outcome FROM receipt_line WHERE call = ?", problem["request_id"])
    assert {outcome for (outcome,) in lines} <= {""}  # nobody was there to say how it ended
    assert platform.output("taken.work", seconds=0.0) == 0.0


def _call_until(platform: Platform, stop: threading.Event) -> list[int]:
    statuses = []
    while not stop.is_set():
        statuses.append(platform.call("taken.work", seconds=0.2).status_code)
    return statuses


def _batch(platform: Platform, folder: Path, lines: int) -> str:
    file = folder / "inputs.jsonl"
    rows = ({"custom_id": f"row-{number}", "input": {"seconds": 0.1}} for number in range(lines))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return platform.cli("batch", "submit", "taken.work", str(file)).stdout.strip()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
