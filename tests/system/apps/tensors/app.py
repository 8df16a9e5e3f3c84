"""Functions of arrays and tensors. Their containers stay, since each that starts imports torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy
import torch

from pilotlight import App, batched

app = App("tensors")


@dataclass
class Match:
    """What is found, and how well it fits."""

    text: str
    score: float


@app.gpu_function()
def norm(vector: torch.Tensor) -> float:
    """The length of a vector."""
    return float(vector.norm())


@app.gpu_function()
def total(numbers: numpy.ndarray, weights: torch.LongTensor | None = None) -> float:
    """The sum of an array."""
    return float(numbers.sum())


@app.gpu_function()
class Scorer:
    """Works on several at a time."""

    @batched(max_batch_size=4, wait_ms=1)
    def score(self, text: list[str], vector: list[torch.Tensor]) -> list[Match]:
        return [Match(one, float(two.sum())) for one, two in zip(text, vector, strict=True)]
