"""Containers that are parked when they are idle, and serve again when somebody calls: with real processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.support.ledger import rows
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

APP = """
import time
import pilotlight

app = pilotlight.App("parked")

@app.gpu_function(scaledown_window=0.0, zero_window=0.0, forecast=False, max_containers=1, memory="256MiB")
class Counter:
    @pilotlight.enter()
    def load(self):
        time.sleep(0.4)  # more than a caller can bear
        self.number = 0

    @pilotlight.method()
    def count(self) -> int:
        self.number += 1
        return self.number
"""

COLUMNS = ("device", "memory", "core_ppm", "gib_ppm", "function", "tenant", "holder")
PARKED = f"SELECT {', '.join(COLUMNS)} FROM lease_line WHERE state = 'parked'"  # noqa: S608 - no value is in it


@pytest.fixture(scope="module")
def parking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A node of one slot that parks what is idle, and the app on it."""
    folder = tmp_path_factory.mktemp("parking")
    (folder / "app.py").write_text(APP)
    with run_platform(folder, "--cpu-slots", "1", "--blanks", "1", env={"PILOTLIGHT_WARM_MEMORY": "512"}) as running:
        running.deploy(folder / "app.py")
        yield running


def parked(platform: Platform) -> dict[str, Any]:
    """The only container, once it is parked and its slot is free."""

    def look() -> dict[str, Any] | None:
        found = platform.containers("parked")
        return found[0] if len(found) == 1 and (found[0]["state"], found[0]["slice"]) == ("parked", "") else None

    return wait_until(look, "the container is parked")


def test_an_idle_container_is_parked_and_serves_the_next_call(parking: Platform) -> None:
    """It knows what it knew, the answer says how it came back, and the slot is anybody's in between."""
    first = parking.answer("parked.Counter", "count")
    was = parked(parking)

    again = parking.answer("parked.Counter", "count")

    assert (first["output"], again["output"]) == (1, 2)
    assert list(again["cold_start"]) == ["unpark"]
    assert "enter" in first["cold_start"]
    assert parked(parking)["id"] == was["id"]
    assert parking.pids.keys() >= {"agent"}


def test_parked_time_is_of_the_memory_alone(parking: Platform) -> None:
    """A line of the ledger has the bytes that it takes, and no part of the slot; it is the operator's guess."""
    parking.answer("parked.Counter", "count")
    parked(parking)

    def lines() -> list[dict[str, Any]]:
        return [dict(zip(COLUMNS, row, strict=True)) for row in rows(parking, PARKED)]

    found = wait_until(lines, "parked time is in the ledger", 90.0)
    assert {line["device"] for line in found} == {"memory"}
    assert all(0 < line["memory"] <= 256 * 2**20 and line["gib_ppm"] > 0 and not line["core_ppm"] for line in found)
    assert {line["function"] for line in found} == {"Counter"}
    assert {(line["tenant"], line["holder"]) for line in found} == {("", "default")}


@pytest.mark.parametrize("part", ["controller", "agent"])
def test_a_killed_part_loses_no_call(parking: Platform, part: str) -> None:
    """A new controller finds what is parked; what an agent has parked dies with it, and nothing of it is left."""
    before = parking.output("parked.Counter", "count")
    was = parked(parking)["id"]
    pid = parking.signal(part, signal.SIGKILL)
    wait_until(lambda: parking.pids.get(part) not in (None, pid), f"another {part} runs")

    again = wait_until(lambda: answered(parking), "a call is answered", 90.0)

    assert again["output"] == (before + 1 if part == "controller" else 1)
    assert (parked(parking)["id"] == was) is (part == "controller")


def answered(platform: Platform) -> dict[str, Any] | None:
    """An answer; None: nobody was there to give one."""
    answer = platform.call("parked.Counter", method="count")
    return answer.json() if answer.status_code == 200 else None


def test_what_is_parked_ends_with_its_app(parking: Platform) -> None:
    """Nothing of it is left when the app is stopped."""
    parking.output("parked.Counter", "count")
    parked(parking)

    parking.http.post("/v1/apps/parked/stop").raise_for_status()

    wait_until(lambda: not parking.containers("parked"), "what is parked ends with its app")
