"""One function for each part of a specification. A change of this file would be a new version of all: leave it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pilotlight import SLO, App, batched, concurrent, enter, method

app = App("shelf")
SHORT = 2.0


@app.gpu_function(scaledown_window=SHORT)
def plain(text: str) -> str:
    """What was said."""
    return text


@app.gpu_function(scaledown_window=SHORT, retries=1, timeout=30, slo=SLO(p95_ms=500), priority="batch", cpu=0.5)
def asked(text: str, times: int = 1) -> dict[str, str | int]:
    """An answer with a schema of its own, from a function with most options."""
    return {"text": text * times, "times": times}


@app.gpu_function(scaledown_window=SHORT)
def counts(upto: int) -> Iterator[int]:
    """A stream."""
    yield from range(upto)


@app.gpu_function(scaledown_window=SHORT, memory="256MiB", env={"GREETING": "hello"})
class Desk:
    """A class with a hook, a batched method and one that runs several calls at once."""

    @enter()
    def open(self) -> None:
        self.opened = True

    @batched(max_batch_size=4, wait_ms=1)
    def both(self, number: list[int]) -> list[int]:
        return [one * 2 for one in number]

    @concurrent(max_inputs=3)
    @method()
    def one(self, number: int) -> int:
        return number + int(self.opened)


@app.gpu_function(scaledown_window=SHORT)
def slow(seconds: float) -> float:
    """Take time: a job that waits while the platform ends."""
    time.sleep(seconds)
    return seconds
