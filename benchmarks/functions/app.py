"""What the benchmarks call: functions that do nothing, so that what is measured is the platform."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

from pilotlight import App, batched, concurrent, enter, method

app = App("bench")


@app.gpu_function(scaledown_window=600)
@concurrent(max_inputs=64)
async def echo(text: str) -> str:
    """Answer what was sent."""
    return text


@app.gpu_function(scaledown_window=600)
@concurrent(max_inputs=64)
def echo_sync(text: str) -> str:
    """Answer what was sent, as a plain function."""
    return text


@app.gpu_function(scaledown_window=600)
class Batched:
    """A no-op through dynamic batching."""

    @batched(max_batch_size=32, wait_ms=5)
    def echo(self, text: list[str]) -> list[str]:
        """Answer what was sent, many at a time."""
        return text


@app.gpu_function(scaledown_window=0.5)
def cold(text: str) -> str:
    """Answer what was sent, from zero."""
    return text


@app.gpu_function(scaledown_window=0.0, zero_window=0.0, forecast=False, max_containers=1)
class Parked:
    """Loads for longer than callers can bear: it is parked when nobody calls."""

    @enter()
    def load(self) -> None:
        """Take as long as a small model."""
        time.sleep(1.0)

    @method()
    def echo(self, text: str) -> str:
        """Answer what was sent."""
        return text


@app.gpu_function(scaledown_window=600)
@concurrent(max_inputs=64)
def count(chunks: int) -> Iterator[str]:
    """That many small chunks, as fast as they are taken."""
    for number in range(chunks):
        yield f"chunk {number}"


@app.gpu_function(scaledown_window=600)
@concurrent(max_inputs=64)
async def tick(chunks: int) -> AsyncIterator[str]:
    """That many small chunks, one in each turn of the loop."""
    for number in range(chunks):
        await asyncio.sleep(0)
        yield f"chunk {number}"
