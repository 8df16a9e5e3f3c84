"""Charts as inline SVG: no script, and they print. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from pilotlight_core.model.units import shown_money

PALETTE = ("#2f5d8a", "#e08e45", "#4f9d8f", "#b3475e", "#8474b5")
"""Told apart by those who see few colours too."""
GREY, GREYED = "#b4bac2", ("all others", "not sold")
WIDTH = 880.0
HEIGHT, LEFT, BOTTOM, TOP = 260.0, 58.0, 26.0, 12.0
BAR, BAR_GAP, LABEL, VALUE = 20.0, 10.0, 225.0, 140.0
MOST_LABELS = 16
"""Under the columns of a chart: more do not fit."""
Series = Sequence[tuple[str, Sequence[float]]]


def column_chart(names: Sequence[str], series: Series, title: str) -> str:
    """A column for each name, of parts that lie one on another; `series` has a part's name, and its value in each."""
    sums = [sum(values[place] for _, values in series) for place in range(len(names))]
    most = nice_ceiling(max(sums, default=0.0))
    room = (WIDTH - LEFT) / max(1, len(names))
    scale = (HEIGHT - TOP - BOTTOM) / most
    parts, colours = [_grid(most, scale)], colours_of([name for name, _ in series])
    for place, name in enumerate(names):
        x, base = LEFT + place * room + room * 0.12, HEIGHT - BOTTOM
        for number, (part, values) in enumerate(series):
            if (value := values[place]) > 0:
                height = value * scale
                base -= height
                about = f"{name}, {part}: {shown_money(value)}"
                parts.append(_rect(x, base, room * 0.76, height, colours[number], about))
        if place % -(-len(names) // MOST_LABELS) == 0:
            parts.append(_text(LEFT + (place + 0.5) * room, HEIGHT - 8, name, "middle"))
    return _svg(HEIGHT, title, "".join(parts))


def bar_chart(rows: Sequence[tuple[str, float]], title: str, shown: Callable[[float], str] = shown_money) -> str:
    """A bar to the right for each row, with its value and its part of all."""
    most, total = max((value for _, value in rows), default=0.0) or 1.0, sum(value for _, value in rows) or 1.0
    room = WIDTH - LABEL - VALUE
    parts = []
    for number, (name, value) in enumerate(rows):
        y = number * (BAR + BAR_GAP) + 4
        text = f"{shown(value)}  ({part_text(value / total)})"
        parts.append(_text(LABEL - 10, y + 14, name, "end"))
        parts.append(_rect(LABEL, y, max(1.0, value / most * room), BAR, PALETTE[0], f"{name}: {text}"))
        parts.append(_text(LABEL + max(1.0, value / most * room) + 8, y + 14, text, "start"))
    return _svg(len(rows) * (BAR + BAR_GAP) + 4, title, "".join(parts))


def legend(names: Sequence[str]) -> str:
    """What the colours of a chart mean."""
    marks = (
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour in zip(names, colours_of(names), strict=True)
    )
    return f'<p class="legend">{"".join(marks)}</p>'


def part_text(part: float) -> str:
    """A part of all, in whole percent; what is too little for one is no 0."""
    return "<1%" if 0 < part < 0.005 else f"{part:.0%}"


def colours_of(names: Sequence[str]) -> list[str]:
    """A colour for each name; what is together, or nobody's, is grey."""
    return [GREY if name in GREYED else PALETTE[number % len(PALETTE)] for number, name in enumerate(names)]


def nice_ceiling(value: float) -> float:
    """The least of 1, 2, 2.5, 5 and 10 times a power of ten that is not below a value."""
    if value <= 0:
        return 1.0
    power = 10.0 ** len(f"{int(value)}") / 10.0 if value >= 1 else 1.0
    while power > value:
        power /= 10.0
    return next(step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * power >= value * (1 - 1e-12))


def largest_first(sums: Mapping[str, float], most: int, rest: str) -> list[tuple[str, float]]:
    """The largest of some sums, and what is left of them under `rest`, if anything is."""
    ordered = sorted(sums.items(), key=lambda found: (-found[1], found[0]))
    kept, others = ordered[:most], ordered[most:]
    return [*kept, (rest, sum(value for _, value in others))] if others else kept


def _grid(most: float, scale: float) -> str:
    lines = []
    steps = 4 if f"{most:.0e}".startswith("2e") and f"{most:.1e}".startswith("2.0") else 5
    for step in range(steps + 1):
        value = most * step / steps
        y = HEIGHT - BOTTOM - value * scale
        lines.append(f'<line x1="{LEFT:g}" x2="{WIDTH:g}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        lines.append(_text(LEFT - 8, y + 4, f"{value:,.4g}", "end"))
    return "".join(lines)


def _rect(x: float, y: float, width: float, height: float, colour: str, about: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}">'
        f"<title>{escape(about)}</title></rect>"
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(height: float, title: str, content: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{content}</svg>"
    )
