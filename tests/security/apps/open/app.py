"""Functions whose answers take long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from pilotlight import App

app = App("open")


@app.gpu_function(timeout=3_600.0)
async def ticks(seconds: float) -> AsyncIterator[int]:
    """A number ten times a second."""
    for number in range(int(seconds * 10)):
        yield number
        await asyncio.sleep(0.1)


@app.gpu_function(timeout=3_600.0)
async def wait(seconds: float) -> float:
    """Nothing for a while."""
    await asyncio.sleep(seconds)
    return seconds
