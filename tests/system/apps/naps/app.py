"""A function of known service time on two nodes, so that its capacity is known."""

from __future__ import annotations

import time

from pilotlight import App

app = App("naps")


@app.gpu_function(min_containers=2, max_containers=2, scaledown_window=600)
def nap(seconds: float) -> float:
    """Sleep; one at a time."""
    time.sleep(seconds)
    return seconds
