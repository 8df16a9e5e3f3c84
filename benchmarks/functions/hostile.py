"""Functions whose answers are small, and stand for much."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pilotlight import App

app = App("hostile")


@app.gpu_function(max_containers=1, scaledown_window=60.0)
def array(shape: list[int], copies: int = 1) -> Any:
    """Arrays of bytes."""
    return [np.zeros(shape, dtype="uint8") for _ in range(copies)]


@app.gpu_function(max_containers=1, scaledown_window=60.0)
def lists(count: int) -> Any:
    """Empty lists: a byte each on their way, 64 in memory."""
    return [[]] * count


@app.gpu_function(max_containers=1, scaledown_window=60.0)
def streamed(shape: list[int], count: int) -> Iterator[Any]:
    """Arrays, in chunks."""
    for _ in range(count):
        yield np.zeros(shape, dtype="uint8")


@app.gpu_function(max_containers=1, scaledown_window=60.0)
def checked(rows: list[dict[str, list[int]]]) -> int:
    """What comes has to be checked."""
    return len(rows)
