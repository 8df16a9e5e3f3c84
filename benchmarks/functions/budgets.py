"""What the benchmark of budgets calls: one call that is held open, and many that are short, under limits of time that
their worst case is reckoned by.
"""

from __future__ import annotations

import asyncio

from pilotlight import App, concurrent

app = App("budgets")


@app.gpu_function(timeout=20, scaledown_window=600)
@concurrent(max_inputs=128)
async def hold(seconds: float) -> str:
    """Stay open for so long."""
    await asyncio.sleep(seconds)
    return ""


@app.gpu_function(timeout=20, scaledown_window=600)
@concurrent(max_inputs=128)
async def hold_again(seconds: float) -> str:
    """The same, under a budget of its own."""
    await asyncio.sleep(seconds)
    return ""


@app.gpu_function(timeout=0.5, scaledown_window=600)
async def brief() -> str:
    """Take about a thousandth of the limit."""
    await asyncio.sleep(0.0005)
    return ""


@app.gpu_function(timeout=0.5, scaledown_window=600)
async def brief_again() -> str:
    """The same, under a budget of its own."""
    await asyncio.sleep(0.0005)
    return ""
