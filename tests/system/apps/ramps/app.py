"""Functions whose containers are counted while those who decide on them come and go."""

from __future__ import annotations

import asyncio
import time

from pilotlight import App, enter, method

app = App("ramps")
LOAD_S = 1.5
SHORT = 1.0
"""Less than it takes until another home is there: what is idle meanwhile would go if nobody held it."""


@app.gpu_function(forecast=False, max_containers=8)
class Lasting:
    """Loads for a while, so that a ramp has a middle, and works for as long as a call says."""

    @enter()
    def load(self) -> None:
        time.sleep(LOAD_S)

    @method()
    async def work(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@app.gpu_function(forecast=False, scaledown_window=SHORT, max_containers=4)
def steady(seconds: float) -> float:
    """Take that long."""
    time.sleep(seconds)
    return seconds
