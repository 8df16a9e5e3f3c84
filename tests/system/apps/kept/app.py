"""A function of which one container is always there."""

from __future__ import annotations

from pilotlight import App

app = App("kept")


@app.gpu_function(min_containers=1, scaledown_window=0.5, forecast=False)
def warm() -> str:
    """Answer at once, the first time too."""
    return "warm"
