"""A model on torch: its weights are pushed by the test."""

from __future__ import annotations

from pilotlight import App, Torch

app = App("torched")

chat = app.engine("chat", Torch("tiny-llama"), max_containers=2, scaledown_window=20.0, forecast=False)
