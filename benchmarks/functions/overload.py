"""What the overload benchmark calls: a function that only takes time, in one container."""

from __future__ import annotations

import asyncio

from pilotlight import App, concurrent

app = App("overload")


@app.gpu_function(scaledown_window=600, max_containers=1)
@concurrent(max_inputs=32)
async def nap(seconds: float) -> float:
    """Hold a slot for so long."""
    await asyncio.sleep(seconds)
    return seconds
