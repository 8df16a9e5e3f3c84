"""One function in four containers: with one slot on each of four nodes, each node has one."""

from __future__ import annotations

from pilotlight import App, concurrent

app = App("hosts")


@app.gpu_function(scaledown_window=600, min_containers=4)
@concurrent(max_inputs=32)
async def echo(text: str) -> str:
    """Answer what was sent."""
    return text
