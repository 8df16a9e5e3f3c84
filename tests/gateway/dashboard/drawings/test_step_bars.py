"""Bars of parts, to one scale."""

from __future__ import annotations

import re

from pilotlight_gateway.dashboard.drawings.step_bars import step_bars


def test_bars_are_to_one_scale_and_steps_have_one_colour() -> None:
    """What follows begins where the one before ends; the legend names each step once."""
    drawing = step_bars("d", "Starts", [("a<b", [("bind", 100.0), ("load", 300.0)]), ("c", [("load", 200.0)])])
    bars = re.findall(
        r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)" height="18" class="part t(\d)"><title>(\w+)', drawing.inner
    ) or [
        (x, width, colour, step)
        for step, x, width, colour in re.findall(r'<rect x="[\d.]+"[^>]*><title>(\w+)[^<]*</title>', drawing.inner)
    ]
    found = {(step, float(width)) for x, width, colour, step in bars}
    widths = dict(sorted(found, key=lambda one: one[1]))
    assert abs(widths["load"] - 3 * widths["bind"]) < 0.5
    assert drawing.inner.count(">bind<") == 1
    assert "a&lt;b" in drawing.inner
    assert "400 ms" in drawing.inner


def test_without_rows_nothing_is_drawn() -> None:
    """But the room of the legend."""
    drawing = step_bars("d", "Starts", [])
    assert (drawing.inner, drawing.height) == ("", 22)
    assert step_bars("d", "Starts", [("a", [("x", 0.0)])]).shape != drawing.shape
