"""Functions that sell what they count."""

from __future__ import annotations

import time

from pilotlight import App, count_units

app = App("sold")


@app.gpu_function(scaledown_window=0.5, forecast=False)
def waits(seconds: float) -> None:
    """Count nothing."""
    time.sleep(seconds)


@app.gpu_function(scaledown_window=0.5, forecast=False, max_units={"prompt_tokens": 4})
def completes(prompt: str) -> str:
    """Count more kinds than are named, and of a long prompt more than is."""
    count_units(prompt_tokens=len(prompt.split()), completion_tokens=1)
    return "yes"


@app.gpu_function(scaledown_window=0.5, forecast=False, timeout=5, max_units={"prompt_tokens": 10**9})
def writes() -> None:
    """Might count a thousand million."""
    count_units(prompt_tokens=1)
