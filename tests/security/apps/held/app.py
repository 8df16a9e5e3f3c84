"""Functions that hold their places for as long as they are let."""

from __future__ import annotations

import asyncio
import contextlib
import time

from pilotlight import App, enter, method

DAY_S = 86_400.0
IDLE_S = 5.0
"""A container whose call was cancelled before it began stays for so long."""
app = App("held")


@app.gpu_function(timeout=DAY_S, max_containers=100, scaledown_window=IDLE_S, forecast=False)
def sleep(seconds: float) -> float:
    """A plain function, which cannot be interrupted."""
    time.sleep(seconds)
    return seconds


@app.gpu_function(timeout=DAY_S, scaledown_window=IDLE_S, forecast=False)
async def stay(seconds: float) -> float:
    """An async function that does not mind being cancelled."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(left)
    return seconds


@app.gpu_function(startup_timeout=DAY_S, forecast=False)
class Endless:
    """A start that never ends."""

    @enter()
    def load(self) -> None:
        """Never returns."""
        time.sleep(DAY_S)

    @method()
    def answer(self) -> int:
        """Is never called."""
        return 42
