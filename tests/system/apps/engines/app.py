"""Engine functions: their folder has no code but this."""

from __future__ import annotations

from pilotlight import App, Sim

app = App("engines")

chat = app.engine("chat", Sim(step_ms=4), max_containers=2, scaledown_window=20.0, forecast=False)
