"""Functions that say when they run, so that it can be counted how often a call did."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from pilotlight import App, batched

app = App("crash")
SHORT = 1.0
MARK = Path("/tmp/crash")
"""Seen from the host, it tells the guests of these functions from blanks."""


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=2)
def once(name: str, seconds: float) -> str:
    """Must not run twice."""
    return run(name, seconds)


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=2, idempotent=True)
def again(name: str, seconds: float) -> str:
    """May run again, if its container died."""
    return run(name, seconds)


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
class Together:
    """As `once`, several at a time."""

    @batched(max_batch_size=8, wait_ms=20)
    def work(self, name: list[str], seconds: list[float]) -> list[str]:
        MARK.touch()
        for one in name:
            print(f"ran {one}")
        time.sleep(max(seconds))
        return name


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
class Patient:
    """As `Together`, but waits long for company."""

    @batched(max_batch_size=64, wait_ms=4000)
    def work(self, name: list[str]) -> list[str]:
        MARK.touch()
        for one in name:
            print(f"ran {one}")
        return name


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
def counts(name: str, seconds: float) -> Iterator[int]:
    """As `once`, in ten pieces."""
    MARK.touch()
    print(f"ran {name}")
    for number in range(10):
        yield number
        time.sleep(seconds / 10)


def run(name: str, seconds: float) -> str:
    """Say so, and take that long."""
    MARK.touch()
    print(f"ran {name}")
    time.sleep(seconds)
    return name
