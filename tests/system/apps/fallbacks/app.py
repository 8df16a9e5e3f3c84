"""A large model that is often full, and a small one with the same hints."""

from __future__ import annotations

import time

from pilotlight import App

app = App("fallbacks")


@app.gpu_function(max_containers=1, scaledown_window=600, fallback="small")
def big(text: str) -> str:
    """Take a while."""
    time.sleep(0.3)
    return f"big {text}"


@app.gpu_function(scaledown_window=600)
def small(text: str) -> str:
    """Answer at once."""
    return f"small {text}"
