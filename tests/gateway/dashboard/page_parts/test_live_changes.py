"""What has changed of a page is told, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_gateway.dashboard.page_parts.blocks import (
    BarScale,
    Block,
    Cell,
    CellBar,
    DataTable,
    Drawing,
    Figure,
    FigureList,
    Heading,
    Sentence,
    TextLines,
    TimeChart,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.live_changes import changes_between, snapshot_of
from pilotlight_gateway.dashboard.page_parts.markup import Markup


def table(*rows: tuple[str, ...], note: str = "") -> DataTable:
    found = [(row[0], row) for row in rows]
    return DataTable(id="t", caption="T", columns=columns_of("a", "b"), rows=rows_of(list(found)), note=note)


def drawing(shape: str = "s", **marks: str) -> Drawing:
    return Drawing(id="d", label="D", inner=Markup(""), width=1, height=1, marks=marks, shape=shape)


def test_what_is_the_same_is_not_told() -> None:
    """Whatever the kind of block."""
    blocks: list[Block] = [
        Sentence(id="s", text="a"), Heading(id="h", text="H"), table(("x", "1")), drawing(m="a"),
        FigureList(id="f", figures=(Figure(key="k", label="L", value="1"),)),
    ]  # fmt: skip
    assert changes_between(blocks, list(blocks)) == {}


def test_texts_and_figures_change_by_their_ids() -> None:
    """With their tones."""
    before: list[Block] = [
        Sentence(id="s", text="a"),
        FigureList(id="f", figures=(Figure(key="k", label="L", value="1", note="n"),)),
    ]
    after: list[Block] = [
        Sentence(id="s", text="b", tone="bad"),
        FigureList(id="f", figures=(Figure(key="k", label="L", value="2", note="n"),)),
    ]
    assert changes_between(before, after) == {"text": [["s", "b", "sentence bad"], ["f-k", "2", ""]]}


def test_cells_change_while_the_rows_are_the_same_ones() -> None:
    """Else all rows are told, with their keys."""
    assert changes_between([table(("x", "1"), ("y", "2"))], [table(("x", "1"), ("y", "3"))]) == {
        "cells": {"t": [[1, 1, "3", "", ""]]}
    }
    assert changes_between([table(("x", "1"))], [table(("y", "2"), ("x", "1"))]) == {
        "rows": {"t": [["y", [["y", "", ""], ["2", "", ""]]], ["x", [["x", "", ""], ["1", "", ""]]]]}
    }
    assert changes_between([table(note="a")], [table(note="b")]) == {"text": [["t-note", "b", "note"]]}


def test_marks_change_while_the_shape_is_the_same() -> None:
    """Else the drawing is fetched."""
    assert changes_between([drawing(m="a", n="b")], [drawing(m="c", n="b")]) == {"marks": [["m", "c"]]}
    assert changes_between([drawing(m="a")], [drawing("other", m="a")]) == {"redraw": ["d"]}


def test_another_set_of_blocks_is_another_page() -> None:
    """It is fetched whole."""
    assert changes_between([table()], [table(), drawing()]) == {"whole": True}
    figures = FigureList(id="f", figures=(Figure(key="k", label="L", value="1"),))
    more = replace(figures, figures=(*figures.figures, Figure(key="m", label="M", value="2")))
    assert changes_between([figures], [more]) == {"redraw": ["f"]}


def test_a_chart_moves_on_by_its_new_points() -> None:
    """And by what its last one has become; lines are told whole."""
    before = TimeChart(id="c", title="C", unit="", names=("a",), at=(1.0, 2.0), values=((5.0, 6.0),))
    after = replace(before, at=(2.0, 3.0), values=((7.0, 8.0),))
    assert changes_between([before], [after]) == {"points": {"c": [2.0, [[2.0, 7.0], [3.0, 8.0]]]}}
    lines = TextLines(id="l", label="L", lines=("a",))
    assert changes_between([lines], [replace(lines, lines=("a", "b"))]) == {"lines": {"l": ["a", "b"]}}


def test_a_snapshot_has_all_that_changes() -> None:
    """The shape of a drawing too: who has another one fetches it."""
    told = snapshot_of([Sentence(id="s", text="a"), table(("x", "1"), note="n"), drawing(m="a")])
    assert told == {
        "text": [["s", "a", "sentence"], ["t-note", "n", "note"]],
        "rows": {"t": [["x", [["x", "", ""], ["1", "", ""]]]]},
        "shapes": [["d", "s"]],
        "marks": [["m", "a"]],
    }


def test_a_snapshot_has_the_lines_that_were_printed_meanwhile() -> None:
    """Who comes back after a break has them at once, not with the next one."""
    assert snapshot_of([TextLines(id="l", label="L", lines=("a", "b"))]) == {"lines": {"l": ["a", "b"]}}


def test_a_bar_goes_with_its_cell() -> None:
    def bars(part: float) -> DataTable:
        cells = (Cell(text="x"), Cell(text="1", bar=CellBar(part=part, scale=BarScale.EVIDENCE)))
        return DataTable(id="t", caption="T", columns=columns_of("a", "b"), rows=rows_of([("k", cells)]))

    assert changes_between([bars(0.1)], [bars(0.25)]) == {"cells": {"t": [[0, 1, "1", "", "", 0.25, "evidence"]]}}
    assert snapshot_of([bars(0.1)])["rows"] == {"t": [["k", [["x", "", ""], ["1", "", "", 0.1, "evidence"]]]]}


KEYS = st.lists(st.sampled_from("abcde"), unique=True)


@given(KEYS, KEYS, st.data())
def test_changes_lead_from_one_table_to_the_next(before: list[str], after: list[str], data: Any) -> None:
    """Applied as the page's module does."""
    value = st.sampled_from(["1", "2"])
    old = table(*((key, data.draw(value)) for key in before))
    new = table(*((key, data.draw(value)) for key in after))
    shown = [[cell.text for cell in row.cells] for row in old.rows]
    changes = changes_between([old], [new])
    for row, column, text, _, _ in changes.get("cells", {}).get("t", []):
        shown[row][column] = text
    if "rows" in changes:
        shown = [[text for text, _, _ in cells] for _, cells in changes["rows"]["t"]]
    assert shown == [[cell.text for cell in row.cells] for row in new.rows]
