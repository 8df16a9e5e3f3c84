"""The model that `train.py` made, served to clients of OpenAI's API under the name `docs`."""

from __future__ import annotations

from pilotlight import App, Torch

app = App("chat")

docs = app.engine("docs", Torch("tiny-docs", max_sequences=32), gpu=["any", "cpu"], serves="docs", scaledown_window=60)
