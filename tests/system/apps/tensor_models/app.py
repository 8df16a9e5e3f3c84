"""Functions that clients of the Open Inference Protocol call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pilotlight import App

app = App("tensor-models")


@app.gpu_function()
def double(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Twice as much."""
    return x * 2


@app.gpu_function()
def count(upto: int) -> Iterator[NDArray[np.int64]]:
    """A tensor for each number."""
    for number in range(upto):
        yield np.array([number])
