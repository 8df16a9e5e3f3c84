"""Functions that do what functions should not do: what the table of bad input is checked with."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

from pilotlight import App

app = App("bad")
SHORT = 1.0
"""Seconds without calls after which a container goes: the next case wants the slot."""


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def typed(count: int, label: str = "none", anything: Any = None) -> str:
    """Take an integer, and say how many."""
    return f"{count} x {label}"


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
async def naps(seconds: float) -> float:
    """Sleep, and say for how long; whoever is cancelled wakes up."""
    await asyncio.sleep(seconds)
    return seconds


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def raises(message: str) -> None:
    """Raise with the caller's words."""
    print("about to raise", file=sys.stderr)
    raise ValueError(message)


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def untravelable() -> object:
    """Return what no wire can carry."""
    return object()


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def promises_a_number() -> int:
    """Return something else than the type hint says."""
    return "not a number"  # type: ignore[return-value]


@app.gpu_function(timeout=0.5, scaledown_window=SHORT, forecast=False)
def oversleeps() -> None:
    """Sleep far past the timeout, deaf to everything."""
    time.sleep(600)


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def exits() -> None:
    """End the whole process."""
    os._exit(3)


@app.gpu_function(memory="256MiB", scaledown_window=SHORT, forecast=False)
def allocates() -> int:
    """Take memory until there is none."""
    taken = []
    while True:
        taken.append(bytearray(os.urandom(1)) * 2**24)


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def forks() -> int:
    """Fork until the system refuses; the children stay."""
    count = 0
    while True:
        if not os.fork():
            time.sleep(600)
        count += 1


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def prints() -> str:
    """Print 100 MB."""
    line = "x" * 999
    for _ in range(100_000):
        print(line)
    return "done"
