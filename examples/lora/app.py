"""One model and two adapters over it: to OpenAI's API `library`, `library:capitals` and `library:signatures`."""

from __future__ import annotations

from pilotlight import App, Torch

app = App("lora")

library = app.engine(
    "library",
    Torch("tiny-docs", max_sequences=32),
    adapters=["capitals", "signatures"],
    gpu=["any", "cpu"],
    serves="library",
    max_containers=1,
    scaledown_window=60,
)
