"""The largest batch there may be, through a restart of everything in the middle. Its figures are printed (-s)."""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.processes import descendants, is_alive
from tests.system.support.sample_apps import APPS
from tests.system.test_batches import status
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.crash, pytest.mark.timeout(1_800)]
ITEMS = 50_000
WITHIN_S = 1_200.0


def running(folder: Path) -> AbstractContextManager[Platform]:
    """A platform in `folder`, of which there is one at a time."""
    return run_platform(folder, "--cpu-slots", "4", "--blanks", "0")


def ended(platform: Platform, batch: str) -> int:
    """How many of its items have."""
    return sum(status(platform, batch)["counts"].values())


def test_fifty_thousand_items_end_once_through_the_death_of_all(tmp_path: Path) -> None:
    """Everything is killed when half of it is done, and started again: every item has its own answer."""
    file = tmp_path / "inputs.jsonl"
    file.write_text("".join(json.dumps({"input": {"value": number}}) + "\n" for number in range(ITEMS)))
    with running(tmp_path) as platform:
        platform.deploy(APPS / "batches" / "app.py")
        submitted = time.monotonic()
        batch = platform.cli("batch", "submit", "bulk.Many", "--method", "twice", str(file)).stdout.strip()
        accepted = time.monotonic()
        wait_until(lambda: ended(platform, batch) > ITEMS // 2, "half of it is done", WITHIN_S)
        half, family = time.monotonic(), descendants(platform.process.pid)
        platform.process.kill()
        platform.process.wait()
        wait_until(lambda: not [pid for pid in family if is_alive(pid)], "everything is dead")
    with running(tmp_path) as platform:
        again = time.monotonic()
        wait_until(lambda: status(platform, batch)["state"] == "completed", "all of it is done", WITHIN_S)
        over = time.monotonic()
        lines = platform.http.get(f"/v1/batches/{batch}/results", timeout=300.0).text.splitlines()
        read = time.monotonic()
        counts = status(platform, batch)["counts"]

    told = [json.loads(line) for line in lines if line]
    assert counts == {"succeeded": ITEMS, "failed": 0, "cancelled": 0, "expired": 0}
    assert [one["index"] for one in told] == list(range(ITEMS))
    assert [one["output"] for one in told] == [2 * number for number in range(ITEMS)]
    per_s = ITEMS / (over - again + half - accepted)
    print(f"accepted in {accepted - submitted:.1f} s, {per_s:.0f} items/s, results in {read - over:.1f} s")
