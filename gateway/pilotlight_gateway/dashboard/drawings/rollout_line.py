"""The steps of a rollout as a line: which are done, where it is, and what is to come. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pilotlight_gateway.dashboard.page_parts.blocks import Drawing
from pilotlight_gateway.dashboard.page_parts.markup import joined, tag
from pilotlight_gateway.dashboard.page_parts.shown_values import number_text

MARGIN, BETWEEN, LEAST, HEIGHT, Y, RADIUS = 40, 96, 46, 56, 20, 8
MOST_WIDTH, OF_WORDS = 1_000, 72
ENDS = ("baking", "promoted")
"""What comes behind the last step."""


def rollout_line(name: str, steps: Sequence[float], place: int, mark: str) -> Drawing:
    """Steps in percent, and what comes behind them. `place`: from 0, where it is; -1: before the first.

    `mark`: how it is there: `now`, `held` or `back`.
    """
    points = [f"{number_text(step)} %" for step in steps] + list(ENDS)
    between = max(LEAST, min(BETWEEN, (MOST_WIDTH - 2 * MARGIN) // max(1, len(points) - 1)))
    at = [MARGIN + number * between for number in range(len(steps))]
    for _ in ENDS:  # their words are longer than a share
        at.append((at[-1] if at else MARGIN - OF_WORDS) + max(between, OF_WORDS))
    drawn = []
    for number in range(len(points) - 1):
        line = "way done" if number < place else "way"
        drawn.append(tag("line", x1=at[number], y1=Y, x2=at[number + 1], y2=Y, class_=line))
    for number, (text, x) in enumerate(zip(points, at, strict=True)):
        state = "done" if number < place else mark if number == place else "to-come"
        drawn.append(tag("g", tag("circle", cx=x, cy=Y, r=RADIUS), tag("text", text, x=x, y=Y + 26), class_=state))
    where = f"at {points[place]}" if 0 <= place < len(points) else "before the first"
    label = f"Steps: {', '.join(points)}; {where}{f', {mark}' if mark != 'now' else ''}"
    inner = tag("g", joined(drawn), class_="steps")
    shape = hashlib.sha256(f"{label}{inner}".encode()).hexdigest()[:16]
    return Drawing(id=name, label=label, inner=inner, width=at[-1] + MARGIN, height=HEIGHT, shape=shape, scrolls=True)
