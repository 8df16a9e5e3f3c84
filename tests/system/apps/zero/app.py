"""Functions that come from nothing and go back to it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

from pilotlight import App, batched, concurrent, enter, exit, method  # noqa: A004 - the hook's name

app = App("zero")
SHORT = 1.0
LOAD_S = 2.0
"""Longer than the window after which an idle container goes."""
LOADS = Path("/tmp/loads")
"""Seen from the host, it tells the guests that load, and lets one go on when it is gone."""


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=3)
def quick(number: int = 0) -> int:
    """Answer at once."""
    return number


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=4)
def flaps(seconds: float) -> float:
    """Take so long, one at a time."""
    time.sleep(seconds)
    return seconds


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def fails() -> None:
    """Raise."""
    raise RuntimeError("on purpose")


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def dies() -> None:
    """Leave a child behind and end without a word."""
    if not os.fork():
        time.sleep(600)
    os._exit(9)


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def trickles(count: int, pause: float) -> Iterator[int]:
    """Yield numbers, and say in the log when it was closed."""
    try:
        for number in range(count):
            yield number
            time.sleep(pause)
    finally:
        print("closed")


@app.gpu_function(scaledown_window=0.5, forecast=False, max_containers=1)
class Heavy:
    """Takes longer to load than anything may be idle. One at a time, since eight calls of a slow machine get two."""

    @enter()
    def load(self) -> None:
        time.sleep(LOAD_S)
        print("loaded")

    @method()
    def ask(self) -> str:
        return "there"

    @exit()
    def leave(self) -> None:
        print("left")


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=4)
@concurrent(max_inputs=50)
class Lasting:
    """Loads until it may go on, and then takes long for its calls, of which four containers take two hundred."""

    @enter()
    def load(self) -> None:
        LOADS.touch()
        while LOADS.exists():
            time.sleep(0.01)

    @method()
    async def work(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@app.gpu_function(scaledown_window=5.0, max_containers=1, forecast=False)
class Prompt:
    """Takes longer to load than its callers wait, and stays for longer than they are told to stay away."""

    @enter()
    def load(self) -> None:
        time.sleep(SHORT)

    @method()
    def ask(self) -> str:
        return "there"


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
class Together:
    """Works on four items at once."""

    @batched(max_batch_size=4, wait_ms=3000)
    def work(self, item: list[str]) -> list[str]:
        print("batch", *sorted(item))
        if any(text.startswith("slow") for text in item):
            time.sleep(0.7)
        return [text.upper() for text in item]
