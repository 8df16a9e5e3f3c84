"""Bars of parts that follow one another, to one scale: the steps of starts, the stages of a call. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pilotlight_gateway.dashboard.page_parts.blocks import Drawing
from pilotlight_gateway.dashboard.page_parts.markup import escaped, joined, tag
from pilotlight_gateway.dashboard.page_parts.shown_values import time_text

WIDTH, LABEL, HEIGHT, GAP, LEGEND = 900, 230, 18, 8, 22
COLOURS = 8

StepRow = tuple[str, Sequence[tuple[str, float]]]
"""A name, and its parts: (step, milliseconds)."""


def step_bars(name: str, label: str, rows: Sequence[StepRow]) -> Drawing:
    """A drawing of a bar for each row; each step has one colour, which a legend names."""
    steps = list(dict.fromkeys(step for _, parts in rows for step, _ in parts))
    most = max((sum(ms for _, ms in parts) for _, parts in rows), default=0.0) or 1.0
    scale = (WIDTH - LABEL - 90) / most
    drawn = [_legend(steps)]
    for place, (title, parts) in enumerate(rows):
        y, left = LEGEND + place * (HEIGHT + GAP), float(LABEL)
        bars = []
        for step, ms in parts:
            width = ms * scale
            if width >= 0.2:
                about = f"{step} {time_text(ms)}"
                bars.append(
                    tag("rect", tag("title", about), x=f"{left:.5g}", y=y, width=f"{width:.4g}", height=HEIGHT,
                        class_=f"part t{steps.index(step) % COLOURS}")
                )  # fmt: skip
            left += width
        total = time_text(sum(ms for _, ms in parts))
        drawn.append(
            joined((
                tag("text", title[:34], x=LABEL - 8, y=y + 13, text_anchor="end"),
                *bars,
                tag("text", total, x=f"{left + 6:.5g}", y=y + 13),
            ))
        )  # fmt: skip
    inner = joined(drawn)
    height = LEGEND + len(rows) * (HEIGHT + GAP)
    shape = hashlib.sha256(inner.encode()).hexdigest()[:16]
    return Drawing(id=name, label=label, inner=inner, width=WIDTH, height=height, shape=shape)


def _legend(steps: Sequence[str]) -> object:
    parts, x = [], 0
    for number, step in enumerate(steps):
        parts.append(tag("rect", x=x, y=2, width=11, height=11, class_=f"part t{number % COLOURS}"))
        parts.append(tag("text", escaped(step), x=x + 15, y=12))
        x += 26 + 7 * len(step)
    return joined(parts)
