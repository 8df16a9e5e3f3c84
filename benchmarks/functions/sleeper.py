"""A function of known service time, so that what is measured is who gets how much of it."""

from __future__ import annotations

import asyncio

from pilotlight import App, concurrent

app = App("sleeper")


@app.gpu_function(scaledown_window=600, max_containers=1)
@concurrent(max_inputs=64)
async def many(ms: float) -> float:
    """Sleep; 64 at a time."""
    await asyncio.sleep(ms / 1000)
    return ms


@app.gpu_function(scaledown_window=600, max_containers=1)
@concurrent(max_inputs=8)
async def few(ms: float) -> float:
    """Sleep; 8 at a time."""
    await asyncio.sleep(ms / 1000)
    return ms
