"""Functions that tell which call they run for, and in which trace."""

from __future__ import annotations

import time

import pilotlight
from pilotlight import SLO, App

app = App("traced")


@app.gpu_function(slo=SLO(p95_ms=60_000))
def outer(number: int = 1) -> dict[str, object]:
    """Its own call, and what a function sees that it calls."""
    own = pilotlight.current_call()
    return {"id": own.id, "traceparent": own.traceparent, "inner": inner.remote(number)}


@app.gpu_function
async def inner(number: int = 1) -> dict[str, object]:
    """Its own call."""
    own = pilotlight.current_call()
    return {"id": own.id, "traceparent": own.traceparent, "tracestate": own.tracestate, "number": number}


@app.gpu_function(max_containers=1)
@pilotlight.batched(max_batch_size=4, wait_ms=50)
def many(number: list[int]) -> list[dict[str, object]]:
    """Each of its items' calls."""
    calls = pilotlight.current_calls()
    return [
        {"id": call.id, "traceparent": call.traceparent, "number": n} for call, n in zip(calls, number, strict=True)
    ]


@app.gpu_function(slo=SLO(p95_ms=50))
def slow(nap: float = 0.1) -> float:
    """Slower than it promises."""
    time.sleep(nap)
    return nap
