"""What has changed between two drawings of a page, as what a page's module does about it. Pure.

text    [[id, text, tone]]                    of sentences and figures
cells   {table: [[row, column, text, tone, href]]}    while the rows are the same ones
rows    {table: [[key, [[text, tone, href]]]]}    when they are not; a cell with a bar has [..., part, scale]
lines   {id: [line]}                          of text as it was printed
marks   [[id, class]]                         of drawings
redraw  [id]                                  blocks of another shape, which the module fetches with the page
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    Drawing,
    FigureList,
    Heading,
    Sentence,
    TextLines,
    TimeChart,
)

Changes = dict[str, Any]
MOST_LINES = 400


def changes_between(before: Sequence[Block], after: Sequence[Block]) -> Changes:
    """What leads from one drawing to the next; {}: nothing has changed."""
    known = {block.id: block for block in before}
    if [block.id for block in before] != [block.id for block in after]:
        return {"whole": True}
    found: Changes = {}
    for block in after:
        former = known[block.id]
        if block != former:
            _note(found, former, block)
    return found


def snapshot_of(blocks: Sequence[Block]) -> Changes:
    """All that changes, for who has missed some: what is the same already changes nothing."""
    found: Changes = {}
    for block in blocks:
        match block:
            case Sentence() | Heading() | FigureList():
                found.setdefault("text", []).extend(_texts(block))
            case DataTable():
                found.setdefault("rows", {})[block.id] = _rows(block)
                if block.note:
                    found.setdefault("text", []).append([f"{block.id}-note", block.note, "note"])
            case Drawing():
                found.setdefault("shapes", []).append([block.id, block.shape])
                found.setdefault("marks", []).extend([name, mark] for name, mark in block.marks.items())
            case TextLines():
                found.setdefault("lines", {})[block.id] = list(block.lines[-MOST_LINES:])
            case _:
                pass
    return found


def _note(found: Changes, before: Block, after: Block) -> None:
    match before, after:
        case ((Sentence() | Heading() | FigureList()), (Sentence() | Heading() | FigureList())):
            old = {one[0]: one for one in _texts(before)}
            new = _texts(after)
            if old.keys() != {one[0] for one in new}:
                found.setdefault("redraw", []).append(after.id)
            else:
                found.setdefault("text", []).extend(one for one in new if old[one[0]] != one)
        case DataTable(), DataTable():
            _note_table(found, before, after)
        case Drawing(), Drawing() if before.shape == after.shape and before.marks.keys() == after.marks.keys():
            marks = [[name, mark] for name, mark in after.marks.items() if before.marks[name] != mark]
            found.setdefault("marks", []).extend(marks)
        case TimeChart(), TimeChart() if before.names == after.names:
            # A chart moves on by a point or two: the module adds them to its table, and draws.
            first = before.at[-1] if before.at else float("-inf")
            places = [place for place, at in enumerate(after.at) if at >= first]
            points = [[after.at[place], *(values[place] for values in after.values)] for place in places]
            found.setdefault("points", {})[after.id] = [after.at[0] if after.at else 0.0, points]
        case TextLines(), TextLines():
            found.setdefault("lines", {})[after.id] = list(after.lines[-MOST_LINES:])
        case _:
            found.setdefault("redraw", []).append(after.id)


def _note_table(found: Changes, before: DataTable, after: DataTable) -> None:
    if before.note != after.note:
        found.setdefault("text", []).append([f"{after.id}-note", after.note, "note"])
    if [row.key for row in before.rows] != [row.key for row in after.rows] or before.columns != after.columns:
        found.setdefault("rows", {})[after.id] = _rows(after)
        return
    cells = [
        [place, number, *_cell(cell)]
        for place, (old, new) in enumerate(zip(before.rows, after.rows, strict=True))
        if old is not new
        for number, (was, cell) in enumerate(zip(old.cells, new.cells, strict=True))
        if was != cell
    ]
    if cells:
        found.setdefault("cells", {})[after.id] = cells


def _texts(block: Sentence | Heading | FigureList) -> list[list[str]]:
    match block:
        case Sentence():
            return [[block.id, block.text, f"sentence {block.tone}".strip()]]
        case Heading():
            return [[block.id, block.text, ""]]
        case FigureList():
            values = [[f"{block.id}-{one.key}", one.value, one.tone] for one in block.figures]
            notes = [[f"{block.id}-{one.key}-note", one.note, "note"] for one in block.figures if one.note]
            return values + notes


def _rows(block: DataTable) -> list[Any]:
    return [[row.key, [_cell(cell) for cell in row.cells]] for row in block.rows]


def _cell(cell: Cell) -> list[Any]:
    bar = [] if cell.bar is None else [round(cell.bar.part, 4), cell.bar.scale]
    return [cell.text, cell.tone, cell.href, *bar]
