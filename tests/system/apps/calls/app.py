"""Functions for everything that a call can be."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from typing import Any

from pilotlight import App, batched, concurrent, count_units, enter, method

app = App("calls")
SHORT = 2.0
FULL = 4
"""Items of a batch that waits for no more."""
LONG_MS = 20_000
"""As long as any machine takes to send so many."""
LONGER_THAN_PAUSES = 30.0  # what counts in its memory must outlive the pauses between a job's tries
tries: dict[str, int] = {}


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def echo(value: Any) -> Any:
    """Give back what came."""
    return value


@app.gpu_function(scaledown_window=2 * SHORT, max_containers=1, forecast=False)
def mirror(value: Any) -> list[Any]:
    """Which type arrived, and what."""
    return [f"{type(value).__module__}.{type(value).__name__}", value]


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def counts(upto: int, size: int = 1) -> Iterator[bytes]:
    """Yield as fast as anybody reads, and tell in the log how far it has come."""
    try:
        for number in range(1, upto + 1):
            if number % 100 == 0:
                print(f"at {number}")
            yield b"x" * size
    finally:
        print("closed")


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
async def naps(seconds: float, name: str = "") -> str:
    """Sleep, one after the other; whoever is cancelled wakes up."""
    print(f"ran {name}")
    await asyncio.sleep(seconds)
    return name


@app.gpu_function(scaledown_window=LONGER_THAN_PAUSES, retries=2, max_containers=1, forecast=False)
def flaky(name: str, failures: int) -> int:
    """Raise so many times, then say how often it was tried."""
    tries[name] = tries.get(name, 0) + 1
    if tries[name] <= failures:
        raise RuntimeError(f"failure {tries[name]} of {name}")
    return tries[name]


@app.gpu_function(scaledown_window=SHORT, forecast=False, retries=2, max_containers=1, timeout=4.0)
def slow_flaky(name: str, failures: int, seconds: float) -> int:
    """As `flaky`, after a while that its timeout allows once."""
    time.sleep(seconds)
    return flaky.local(name, failures)


@app.gpu_function(scaledown_window=SHORT, forecast=False, retries=2, max_containers=1)
def flaky_stream(name: str, failures: int) -> Iterator[int]:
    """As `flaky`, before it yields."""
    tried = flaky.local(name, failures)
    yield tried
    yield tried


@app.gpu_function(scaledown_window=LONGER_THAN_PAUSES, retries=2, max_containers=1, forecast=False)
class FlakyBatch:
    """As `flaky`, of a batch."""

    @batched(max_batch_size=FULL, wait_ms=1)
    def work(self, name: list[str], failures: list[int]) -> list[int]:
        return [flaky.local(one, most) for one, most in zip(name, failures, strict=True)]


@app.gpu_function(scaledown_window=SHORT, forecast=False, idempotent=True, max_containers=1)
def hopeless(name: str) -> None:
    """Die every time."""
    print(f"ran {name}")
    os._exit(7)


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
class Batches:
    """Takes several at a time."""

    @batched(max_batch_size=FULL, wait_ms=LONG_MS)
    def halve(self, number: list[int]) -> list[Any]:
        """One that is odd fails alone."""
        return [ValueError(f"{one} is odd") if one % 2 else one // 2 for one in number]

    @batched(max_batch_size=FULL, wait_ms=LONG_MS)
    def all_or_none(self, number: list[int]) -> list[int]:
        """One that is odd spoils all."""
        if odd := [one for one in number if one % 2]:
            raise ValueError(f"{odd} are odd")
        return [one // 2 for one in number]


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1, idempotent=True)
class Careful:
    """As `Batches.all_or_none`, and may be run again."""

    @batched(max_batch_size=FULL, wait_ms=LONG_MS)
    def halve(self, number: list[int]) -> list[int]:
        if odd := [one for one in number if one % 2]:
            raise ValueError(f"{odd} are odd")
        return [one // 2 for one in number]


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
@concurrent(max_inputs=8)
class Many:
    """Works on many calls at a time."""

    waiting = 0

    @enter()
    async def open(self) -> None:
        self.complete = asyncio.Event()

    @method()
    async def meet(self, others: int) -> int:
        """Wait until so many are here."""
        self.waiting += 1
        if self.waiting == others:
            self.complete.set()
        await self.complete.wait()
        return self.waiting


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def metered(seconds: float) -> None:
    """Use a known time."""
    time.sleep(seconds)


@app.gpu_function(cpu=1, memory="4GiB", scaledown_window=SHORT, forecast=False)
def roomy(seconds: float) -> None:
    """Use a known time with more of the host."""
    time.sleep(seconds)


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def completes(prompt: str) -> str:
    """Count its words as tokens."""
    count_units(prompt_tokens=len(prompt.split()), completion_tokens=1)
    return "yes"
