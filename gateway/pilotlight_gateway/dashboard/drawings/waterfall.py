"""A call's time, part by part, to scale. Stretches in which nothing is done are cut short, and say by how much. Pure.

A stretch is idle when no part covers it, or one that only waits; a part with steps is covered by them alone. What is
done keeps its scale, so that a wait of a minute does not make hairlines of the milliseconds around it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import Drawing
from pilotlight_gateway.dashboard.page_parts.markup import Markup, joined, tag
from pilotlight_gateway.dashboard.page_parts.shown_values import time_text

WIDTH, LABEL, TAKEN, ROW, BAR, HEAD = 900, 190, 80, 22, 14, 26
WAITS = ("queue", "batch_wait")
LONGEST_WAIT = 0.5
"""How long an idle stretch is drawn at most, as a part of all the time in which something is done."""
COLOURS = 8
TITLE_LENGTH = 28


@dataclass(frozen=True, kw_only=True)
class AxisStretch:
    """A piece of the axis between two instants at which a part begins or ends, in ms."""

    begin: float
    end: float
    drawn: float
    """How long it is drawn; shorter than it is: it is cut."""

    @property
    def cut(self) -> bool:
        return self.drawn < self.end - self.begin


def axis_of(rows: Sequence[Mapping[str, Any]], total_ms: float) -> list[AxisStretch]:
    """The whole axis, from a call's arrival to its end."""
    with_steps = {row["step_of"] for row in rows if row["step_of"]}
    spans = [(max(row["begin_ms"], 0.0), row["begin_ms"] + row["ms"]) for row in rows]
    works = [
        span
        for span, row in zip(spans, rows, strict=True)
        if row["name"] not in WAITS and row["name"] not in with_steps
    ]
    end = max([total_ms, *(until for _, until in spans)])
    instants = sorted({0.0, end, *(at for span in spans for at in span)})
    pieces = [(a, b, any(begin <= a and b <= until for begin, until in works)) for a, b in pairwise(instants)]
    worked = sum(b - a for a, b, at_work in pieces if at_work)
    most = worked * LONGEST_WAIT or end
    return [
        AxisStretch(begin=a, end=b, drawn=b - a if at_work else min(b - a, most)) for a, b, at_work in _merged(pieces)
    ]


def _merged(pieces: Sequence[tuple[float, float, bool]]) -> list[tuple[float, float, bool]]:
    """Idle pieces that follow one another as one: it is the whole of them that is cut."""
    found: list[tuple[float, float, bool]] = []
    for begin, end, at_work in pieces:
        if found and not at_work and not found[-1][2]:
            found[-1] = (found[-1][0], end, False)
        else:
            found.append((begin, end, at_work))
    return found


def place_of(axis: Sequence[AxisStretch], at: float) -> float:
    """Where an instant is on the axis, in drawn ms."""
    left = 0.0
    for stretch in axis:
        if at <= stretch.end:
            length = stretch.end - stretch.begin
            return left + (stretch.drawn * (at - stretch.begin) / length if length else 0.0)
        left += stretch.drawn
    return left


def waterfall(name: str, label: str, rows: Sequence[Mapping[str, Any]], total_ms: float) -> Drawing:
    """A bar for each part of a call, below each other, where they lie in its time."""
    axis = axis_of(rows, total_ms)
    most = sum(stretch.drawn for stretch in axis) or 1.0
    scale = (WIDTH - LABEL - TAKEN) / most
    names = list(dict.fromkeys(row["name"] for row in rows))
    height = HEAD + len(rows) * ROW
    drawn = [
        *(
            _cut(stretch, LABEL + place_of(axis, stretch.begin) * scale, height, scale)
            for stretch in axis
            if stretch.cut
        ),
        *(_bar(row, place, axis, scale, names.index(row["name"]) % COLOURS) for place, row in enumerate(rows)),
    ]
    inner = joined(drawn)
    shape = hashlib.sha256(inner.encode()).hexdigest()[:16]
    return Drawing(id=name, label=label, inner=inner, width=WIDTH, height=height, shape=shape)


def _bar(row: Mapping[str, Any], place: int, axis: Sequence[AxisStretch], scale: float, colour: int) -> Markup:
    y = HEAD + place * ROW
    left = LABEL + place_of(axis, row["begin_ms"]) * scale
    right = LABEL + place_of(axis, row["begin_ms"] + row["ms"]) * scale
    attempt = f" (attempt {row['attempt']})" if row["attempt"] else ""
    title = f"{'· ' if row['step_of'] else ''}{row['name']}{attempt}"
    taken = time_text(row["ms"])
    return joined((
        tag("text", title[:TITLE_LENGTH], x=LABEL - 8, y=y + 11, text_anchor="end"),
        tag("rect", tag("title", f"{title} {taken}"), x=f"{left:.5g}", y=y, width=f"{max(1.0, right - left):.4g}",
            height=BAR, class_=f"part t{colour}"),
        tag("text", taken, x=f"{right + 5:.5g}", y=y + 11),
    ))  # fmt: skip


def _cut(stretch: AxisStretch, x: float, height: int, scale: float) -> Markup:
    """Two dashed lines around a stretch that is drawn shorter than it is, and what it leaves out."""
    width = stretch.drawn * scale
    left_out = time_text(stretch.end - stretch.begin - stretch.drawn)
    lines = "".join(f"M{at:.5g} {HEAD - 8}V{height}" for at in (x, x + width))
    return joined((
        tag("path", tag("title", f"{left_out} more than is drawn"), d=lines, class_="device out"),
        tag("text", f"+{left_out}", x=f"{x + width / 2:.5g}", y=12, text_anchor="middle"),
    ))  # fmt: skip
