"""One HTML page with the table and the pictures of simulations, without anything from elsewhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from html import escape

from pilotlight_autoscaler.simulator.results.result_pictures import pareto_png, timeline_png
from pilotlight_autoscaler.simulator.results.simulation_result import ROWS, SimulationResult

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } td, th { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd }
td:first-child, th:first-child { text-align: left; padding-left: 0 } img { max-width: 100%; height: auto }
"""


def page_of(results: Mapping[str, SimulationResult], heading: str) -> str:
    """The page; `heading` says what was simulated."""
    figures = {name: result.figures() for name, result in results.items()}
    head = "".join(f"<th>{escape(name)}</th>" for name in figures)
    rows = "".join(
        f"<tr><td>{escape(words)}</td>"
        + "".join(f"<td>{format(each[name], how)}</td>" for each in figures.values())
        + "</tr>\n"
        for name, (words, how) in ROWS.items()
    )
    pictures = [_image(pareto_png(results), "idle GPU-hours against cold starts")]
    pictures += [_image(timeline_png(name, each), f"containers over time: {name}") for name, each in results.items()]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(heading)}</title>'
        f"<style>{STYLE}</style></head>\n<body><h1>Simulation</h1><p>{escape(heading)}</p>\n"
        f"<table><tr><th></th>{head}</tr>\n{rows}</table>\n{''.join(pictures)}</body></html>\n"
    )


def _image(png: bytes, what: str) -> str:
    return f'<p><img alt="{escape(what)}" src="data:image/png;base64,{b64encode(png).decode()}"></p>\n'
