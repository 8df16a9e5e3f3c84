"""A call's parts to scale, with idle stretches cut short."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_gateway.dashboard.drawings.waterfall import LABEL, TAKEN, WIDTH, axis_of, place_of, waterfall

BARS = re.compile(r'<rect x="([\d.e+]+)" y="\d+" width="([\d.e+]+)"[^>]*><title>([^<]*)</title>')


def part(name: str, begin: float, ms: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "begin_ms": begin, "ms": ms, "attempt": 0, "step_of": "", **more}


def test_what_is_done_is_to_scale_and_a_long_wait_is_cut() -> None:
    """It says how much of it is not drawn; what is done twice as long is twice as wide."""
    rows = [part("queue", 0, 60_000), part("transport", 60_000, 10), part("execute", 60_010, 20)]
    drawn = waterfall("d", "A call", rows, 60_030)
    widths = {title.partition(" ")[0]: float(width) for _, width, title in BARS.findall(drawn.inner)}
    assert abs(widths["execute"] - 2 * widths["transport"]) < 0.5
    assert abs(widths["queue"] - 1.5 * widths["transport"]) < 0.5
    assert "+1 min 0 s</text>" in drawn.inner or "+60.0 s</text>" in drawn.inner
    assert 'class="device out"' in drawn.inner
    short = waterfall("d", "A call", [part("queue", 0, 5), part("execute", 5, 20)], 25)
    assert "device out" not in short.inner


def test_a_part_with_steps_is_at_work_in_them_alone() -> None:
    """What of it no step covers is a gap."""
    rows = [part("start", 0, 1_000), part("load", 900, 100, step_of="start"), part("execute", 1_000, 100)]
    axis = axis_of(rows, 1_100)
    assert [(one.begin, one.end, one.drawn, one.cut) for one in axis] == [
        (0, 900, 100.0, True), (900, 1_000, 100, False), (1_000, 1_100, 100, False),
    ]  # fmt: skip
    assert [place_of(axis, at) for at in (0, 450, 900, 1_050, 9_999)] == [0.0, 50.0, 100.0, 250.0, 300.0]


def test_attempts_and_names_are_said() -> None:
    """And escaped."""
    drawn = waterfall("d", "A <call>", [part("<img>", 0, 5, attempt=2)], 5)
    assert "&lt;img&gt; (attempt 2)" in drawn.inner
    assert "<img" not in drawn.inner
    assert waterfall("d", "A call", [], 0).inner == ""


@given(st.lists(st.tuples(st.sampled_from(("queue", "start", "execute")), st.floats(0, 1e5)), max_size=8))
def test_all_of_it_fits(parts: list[tuple[str, float]]) -> None:
    """Whatever its parts are; none begins before the one that it follows."""
    rows, at = [], 0.0
    for name, ms in parts:
        rows.append(part(name, at, ms))
        at += ms
    drawn = waterfall("d", "A call", rows, at)
    places = [(float(x), float(width)) for x, width, _ in BARS.findall(drawn.inner)]
    assert len(places) == len(rows)
    for x, width in places:
        assert x >= LABEL - 1
        assert x + width <= WIDTH - TAKEN + 2
    assert sorted(x for x, _ in places) == [x for x, _ in places]
