"""Functions that are run over many inputs."""

from __future__ import annotations

import time
from typing import Any

from pilotlight import App, concurrent, method

app = App("bulk")


@app.gpu_function(idempotent=True, max_containers=4, scaledown_window=30)
def steady(value: int) -> int:
    """Take a moment, whatever dies meanwhile."""
    time.sleep(0.05)
    return value


@app.gpu_function(max_containers=2, scaledown_window=30)
def naps(seconds: float) -> float:
    """Sleep."""
    time.sleep(seconds)
    return seconds


@app.gpu_function(scaledown_window=30)
def echo(value: Any) -> Any:
    """Give back what came."""
    return value


@app.gpu_function(idempotent=True, max_containers=2, scaledown_window=30)
@concurrent(max_inputs=32)
class Many:
    """Works on many at a time."""

    @method()
    async def twice(self, value: int) -> int:
        """Take no time."""
        return 2 * value
