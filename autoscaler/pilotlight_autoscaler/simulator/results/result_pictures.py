"""Pictures of simulations, drawn by matplotlib: idle GPU time against cold starts, and containers over time.

matplotlib comes with the extra `plots` and is loaded when the first picture is drawn.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from pilotlight_autoscaler.simulator.results.simulation_result import SimulationResult

MISSING = "pictures need matplotlib: pip install 'pilotlight[plots]'"
INK, GRID = "#222222", "#dddddd"
COLOURS = {"wanted": "#c44e52", "ready": "#4c72b0", "parked": "#8c8c8c"}
MOST_NAMES = 24


class CannotDraw(RuntimeError):
    """What draws pictures is not installed; says how to get it."""


def check_drawable() -> None:
    """Refuse early what cannot be drawn later.

    Raises:
        CannotDraw: the extra is missing.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise CannotDraw(MISSING)


def pareto_png(results: Mapping[str, SimulationResult]) -> bytes:
    """Each simulation as a point: what it let idle, and how many calls began cold."""
    figure, axes = _figure()
    points = {name: result.figures() for name, result in results.items()}
    hours = [each["idle_gpu_s"] / 3600.0 for each in points.values()]
    cold = [100.0 * each["cold_start_rate"] for each in points.values()]
    best = _frontier(list(zip(hours, cold, strict=True)))
    if len(best) > 1:
        axes.step([x for x, _ in best], [y for _, y in best], where="post", color=GRID, linewidth=2, zorder=1)
    axes.scatter(hours, cold, color=COLOURS["ready"], s=36, zorder=2)
    for name, x, y in list(zip(points, hours, cold, strict=True))[:MOST_NAMES]:
        axes.annotate(name, (x, y), textcoords="offset points", xytext=(6, 5), fontsize=9, color=INK)
    axes.set_xlabel("idle GPU-hours")
    axes.set_ylabel("cold starts, % of calls")
    axes.set_title("Left and below is better", loc="left", fontsize=11)
    axes.set_xlim(0, max([*hours, 1e-3]) * 1.18)
    axes.set_ylim(0, max([*cold, 1e-3]) * 1.15)
    return _png(figure)


def timeline_png(name: str, result: SimulationResult) -> bytes:
    """Containers that were wanted, ready and parked, minute by minute."""
    figure, axes = _figure()
    line, minutes = result.timeline, max(1, int(result.at // 60))
    hours = [minute / 60.0 for minute in range(minutes)]
    axes.fill_between(hours, line.ready[:minutes], color=COLOURS["ready"], alpha=0.25, linewidth=0, step="post")
    axes.step(hours, line.ready[:minutes], color=COLOURS["ready"], linewidth=1.2, where="post", label="ready")
    axes.step(hours, line.wanted[:minutes], color=COLOURS["wanted"], linewidth=1.0, where="post", label="wanted")
    axes.step(hours, line.parked[:minutes], color=COLOURS["parked"], linewidth=1.0, where="post", label="parked")
    axes.set_xlabel("hours")
    axes.set_ylabel("containers")
    axes.set_title(f"Containers over time: {name}", loc="left", fontsize=11)
    axes.set_xlim(0, max(hours[-1], 1 / 60))
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, loc="upper right", ncols=3)
    return _png(figure)


def _frontier(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other is better than in both."""
    found: list[tuple[float, float]] = []
    for x, y in sorted(points):
        if not found or y < found[-1][1]:
            found.append((x, y))
    return found


def _figure() -> tuple[Any, Any]:
    check_drawable()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _png(figure: Any) -> bytes:
    out = BytesIO()
    figure.savefig(out, format="png", metadata={"Software": "pilotlight"})
    return out.getvalue()
