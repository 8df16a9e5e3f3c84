"""Functions that tell a server outside of the platform that they run, so that it counts how often a call did."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from typing import Any

from pilotlight import App

app = App("counted")
COUNTER = "counter.example.com"
OUT = [f"http://{COUNTER}:80"]
SHORT = 1.0


def tell(name: str) -> None:
    """The side effect; without it the call fails."""
    urllib.request.urlopen(f"http://{COUNTER}/", data=name.encode(), timeout=30).close()


@app.gpu_function(network=OUT, scaledown_window=SHORT, forecast=False, max_containers=2)
def once(name: str, seconds: float) -> str:
    """Must not run twice."""
    tell(name)
    time.sleep(seconds)
    return name


@app.gpu_function(network=OUT, scaledown_window=SHORT, forecast=False, max_containers=2, idempotent=True)
def again(name: str, seconds: float) -> str:
    """May run again, if its container died."""
    tell(name)
    time.sleep(seconds)
    return name


@app.gpu_function(network=OUT, scaledown_window=SHORT, forecast=False, max_containers=1)
def counts(name: str, seconds: float) -> Iterator[int]:
    """As `once`, in ten pieces."""
    tell(name)
    for number in range(10):
        yield number
        time.sleep(seconds / 10)


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=2, idempotent=True)
def steady(value: int) -> int:
    """Take a moment, whatever dies meanwhile."""
    time.sleep(0.05)
    return value


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def echo(value: Any) -> Any:
    """Give back what came."""
    return value
