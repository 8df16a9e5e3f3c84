"""The smallest app: two plain functions, typed, on a CPU slot."""

from __future__ import annotations

from pilotlight import App

app = App("hello")


@app.gpu_function(scaledown_window=10)
def greet(name: str = "world") -> str:
    """Say hello. The line it prints becomes a line of the function's log."""
    print(f"greeting {name}")
    return f"Hello, {name}!"


@app.gpu_function(idempotent=True)
def add(left: int, right: int) -> int:
    """Add two integers; anything else is refused at the gateway, before a container is touched.

    It may safely run twice, and says so: should its container die, the platform starts the call again elsewhere.
    """
    return left + right
