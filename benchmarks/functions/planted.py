"""Functions with one bottleneck each, for `python -m benchmarks.diagnose --real`: they take time, and no GPU.

A batch of n sleeps `fixed + each * n`, as one on a device would take so long while the processors idle.
"""

from __future__ import annotations

import asyncio
import time

from pilotlight import SLO, App, batched, enter, method

app = App("planted")
MS = 0.001
LEVEL = SLO(p95_ms=300)


def nap(fixed_ms: float, each_ms: float, count: int) -> None:
    """Take the time of a batch."""
    time.sleep((fixed_ms + each_ms * count) * MS)


@app.gpu_function(gpu="H100", max_containers=1, scaledown_window=60, slo=LEVEL)
@batched(max_batch_size=8, wait_ms=2)
def gpu(x: list[int]) -> list[int]:
    """One container that can do 100 calls a second."""
    nap(40, 5, len(x))
    return x


@app.gpu_function(gpu="H100", max_containers=1, scaledown_window=60, slo=LEVEL)
@batched(max_batch_size=16, wait_ms=2, cost="x", max_batch_cost=2)
def starved(x: list[int]) -> list[int]:
    """Its batches end at two calls, each of which costs 1."""
    nap(30, 1, len(x))
    return x


@app.gpu_function(gpu="H100", max_containers=1, scaledown_window=60)
@batched(max_batch_size=32, wait_ms=500)
def waits(x: list[int]) -> list[int]:
    """Its batches wait for company."""
    nap(60, 1, len(x))
    return x


@app.gpu_function(gpu="H100", max_containers=2, scaledown_window=1, slo=LEVEL)
class Cold:
    """Its start takes two seconds, and it ends after one without calls."""

    @enter()
    def load(self) -> None:
        """As long as weights take."""
        time.sleep(2)

    @method()
    def run(self, x: int) -> int:
        """A short call."""
        nap(20, 0, 1)
        return x


@app.gpu_function(gpu="L4", max_containers=6, scaledown_window=60, slo=LEVEL)
def placed(x: int) -> int:
    """It wants more GPUs than there are."""
    nap(50, 0, 1)
    return x


@app.gpu_function(gpu="H100", max_containers=2, scaledown_window=60, slo=LEVEL)
def shared(ms: float) -> float:
    """What two tenants call."""
    time.sleep(ms * MS)
    return ms


@app.gpu_function(gpu="H100", max_containers=2, scaledown_window=60, slo=LEVEL)
async def quick(x: int) -> int:
    """Fast enough."""
    await asyncio.sleep(0.02)
    return x


@app.gpu_function(gpu="H100", max_containers=2, scaledown_window=60, slo=LEVEL)
async def hurried(x: int) -> int:
    """Fast enough, and asked by few."""
    await asyncio.sleep(0.02)
    return x


@app.gpu_function(gpu="H100", max_containers=2, scaledown_window=60, slo=LEVEL)
async def limited(x: int) -> int:
    """Fast enough, and its callers are limited."""
    await asyncio.sleep(0.02)
    return x


@app.gpu_function(gpu="H100", max_containers=2, startup_timeout=20)
class Broken:
    """It never becomes ready."""

    @enter()
    def load(self) -> None:
        """Fails."""
        raise RuntimeError("there is no such file: weights.safetensors")

    @method()
    def run(self, x: int) -> int:
        """Never runs."""
        return x


@app.gpu_function(gpu="H100", max_containers=1, scaledown_window=60, cpu=1, slo=LEVEL)
def decodes(x: int) -> int:
    """Its processors work while its device waits."""
    until = time.process_time() + 30 * MS
    while time.process_time() < until:
        pass
    nap(8, 0, 1)
    return x
