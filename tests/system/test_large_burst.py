"""Two hundred long calls come at once to nothing, and need as many containers as the machine has room for."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pilotlight
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
CALLS = 200
CONTAINERS = min(CALLS, 10 * len(os.sched_getaffinity(0)))
"""Each has a tenth of a core."""
SOURCE = f"""\
import asyncio
import time

import pilotlight

app = pilotlight.App("burst")


@app.gpu_function(max_containers={CONTAINERS}, memory="64MiB", scaledown_window=1.0, forecast=False)
@pilotlight.concurrent(max_inputs={-(-CALLS // CONTAINERS)})
class Minute:
    @pilotlight.enter()
    def load(self) -> None:
        time.sleep(5.0)

    @pilotlight.method()
    async def work(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
"""


def test_two_hundred_calls_get_all_their_containers_at_once(tmp_path: Path) -> None:
    """All of them are there, and all calls run, before the first one ends."""
    source = tmp_path / "burst.py"
    source.write_text(SOURCE)
    with run_platform(tmp_path, "--cpu-slots", str(CONTAINERS), "--blanks", "0") as platform:
        platform.deploy(source)
        names = [pilotlight.call_id() for _ in range(CALLS)]

        def begin(name: str) -> str:
            body = {"id": name, "input": {"seconds": 600.0}, "method": "work", "deadline_ms": 900_000.0}
            answer = many.post("/v1/functions/burst.Minute/calls", json=body, timeout=900.0)
            return str(answer.json().get("code"))

        with platform.as_holder_of(platform.key) as many, ThreadPoolExecutor(CALLS) as callers:
            calls = callers.map(begin, names)
            try:
                wait_until(lambda: len(platform.containers("burst")) == CONTAINERS, "all containers are there", 300.0)
                wait_until(
                    lambda: sum(each["running"] for each in platform.containers("burst")) == CALLS, "all run", 300.0
                )
            finally:
                for name in names:
                    platform.http.delete(f"/v1/calls/{name}")
            assert set(calls) == {"cancelled"}
        wait_until(lambda: not platform.containers("burst"), "all go, by and by", 300.0)
