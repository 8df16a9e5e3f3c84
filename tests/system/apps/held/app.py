"""Functions whose size people say."""

from __future__ import annotations

from pilotlight import App, Warm

app = App("held")


@app.gpu_function(scaledown_window=1.0, forecast=False, max_containers=3)
def plain(number: int = 0) -> int:
    """Answer at once."""
    return number


@app.gpu_function(scaledown_window=1.0, forecast=False, warm=[Warm("00:00-24:00", containers=1, tz="Europe/Berlin")])
def warm(number: int = 0) -> int:
    """Answer at once, at any time."""
    return number
