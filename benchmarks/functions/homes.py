"""Functions that are all alike, but for their homes: with several gateways some are at home at each."""

from __future__ import annotations

from pilotlight import App, concurrent

MANY = 16
app = App("homes")


def make(name: str) -> None:
    """Add a function that answers what it was sent."""

    async def echo(text: str) -> str:
        return text

    echo.__name__ = echo.__qualname__ = name
    globals()[name] = app.gpu_function(scaledown_window=5)(concurrent(max_inputs=64)(echo))


for number in range(MANY):
    make(f"echo_{number}")
