"""Charts are SVG that any reader takes."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pilotlight_gateway.reports.svg_charts import PALETTE, bar_chart, column_chart, largest_first, legend, nice_ceiling

SVG = "{http://www.w3.org/2000/svg}"


def rects(svg: str) -> list[ElementTree.Element]:
    return [part for part in ElementTree.fromstring(svg).iter() if part.tag.endswith("rect")]  # noqa: S314 - our own


def test_parts_of_a_column_lie_one_on_another() -> None:
    """As high as their values; nothing is drawn for 0."""
    first, second = rects(column_chart(["a", "b"], [("x", [1.0, 0.0]), ("y", [3.0, 0.0])], "a title"))
    assert float(second.get("height", 0)) == pytest.approx(3 * float(first.get("height", 0)), abs=0.5)
    assert float(second.get("y", 0)) + float(second.get("height", 0)) == pytest.approx(
        float(first.get("y", 0)), abs=0.2
    )
    assert (first.get("fill"), second.get("fill")) == PALETTE[:2]
    assert rects(column_chart(["a"], [("x", [0.0])], "empty")) == []
    assert rects(column_chart([], [], "nothing")) == []


def test_bars_say_their_value_and_their_part() -> None:
    """The longest is the largest."""
    svg = bar_chart([("one", 3.0), ("two", 1.0)], "bars")
    long, short = rects(svg)
    assert float(long.get("width", 0)) == pytest.approx(3 * float(short.get("width", 0)), abs=0.5)
    assert "3.00  (75%)" in svg
    assert rects(bar_chart([], "none")) == []


def test_names_are_text() -> None:
    """Never markup."""
    evil = '<script>alert("x")</script>'
    for drawn in (column_chart([evil], [(evil, [1.0])], evil), bar_chart([(evil, 1.0)], evil), legend([evil])):
        assert "<script>" not in drawn


def test_axes_end_at_a_round_number() -> None:
    """Not below the value."""
    values = (0.0, 0.003, 0.7, 1.0, 1.1, 2.3, 4.0, 7.0, 10.0, 12.0, 999.0)
    assert [nice_ceiling(value) for value in values] == pytest.approx(
        [1.0, 0.005, 1.0, 1.0, 2.0, 2.5, 5.0, 10.0, 10.0, 20.0, 1000.0]
    )


def test_what_is_small_goes_together() -> None:
    """The largest stay, in their order."""
    assert largest_first({"a": 1, "b": 3, "c": 2, "d": 1}, 2, "rest") == [("b", 3), ("c", 2), ("rest", 2)]
    assert largest_first({"a": 1}, 2, "rest") == [("a", 1)]
