"""Tables of answers: whole in a file or pipe, as wide as the window on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilotlight.cli.output import console, note, on_terminal
from pilotlight.cli.printable import printable_line

GAP = 2
Lines = list[list[str]]


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    empty: str,
    right: Sequence[str] = (),
    less: Sequence[str] = (),
) -> None:
    """Print rows under their columns, those in `right` right-aligned; or note `empty`.

    In a window that is too narrow, the columns in `less` are left out one after the other; if that is not enough, each
    row is a block of lines. What is cut or folded inside a cell cannot be copied.
    """
    if not rows:
        note(empty)
        return
    lines = [[printable_line(str(cell)) for cell in row] for row in rows]
    if not on_terminal():
        for line in _aligned([list(columns), *lines], [column in right for column in columns]):
            print(line)
        return
    room = console().width
    kept = fitting(columns, lines, less, room)
    shown = [columns[index] for index in kept]
    lines = [[line[index] for index in kept] for line in lines]
    if width_of([shown, *lines]) > room:
        _print_blocks(shown, lines)
    else:
        head, *body = _aligned([shown, *lines], [column in right for column in shown])
        _print_bold(head)
        for line in body:
            print(line)
    if left_out := [column for column in columns if column not in shown]:
        note(f"Left out: {', '.join(left_out)}; a wider window shows more, --json all.")


def fitting(columns: Sequence[str], lines: Lines, less: Sequence[str], room: int) -> list[int]:
    """Return the indices of the columns that are shown in `room` characters, without what `less` names first."""
    kept = list(range(len(columns)))
    for name in less:
        if width_of([[line[index] for index in kept] for line in [list(columns), *lines]]) <= room:
            break
        kept.remove(columns.index(name))
    return kept


def width_of(lines: Sequence[Sequence[str]]) -> int:
    """Return the characters of a line, as wide as the widest cell of each column."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return sum(widths) + GAP * (len(widths) - 1)


def _aligned(lines: Lines, right: Sequence[bool]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        (" " * GAP)
        .join(
            cell.rjust(width) if at_right else cell.ljust(width)
            for cell, width, at_right in zip(line, widths, right, strict=True)
        )
        .rstrip()
        for line in lines
    ]


def _print_blocks(columns: Sequence[str], lines: Lines) -> None:
    width = max(map(len, columns))
    for number, line in enumerate(lines):
        if number:
            print()
        for column, cell in zip(columns, line, strict=True):
            _print_bold(column.ljust(width), end=f"{' ' * GAP}{cell}".rstrip() + "\n")


def _print_bold(text: str, end: str = "\n") -> None:
    from rich.text import Text

    console().print(Text(text, style="bold"), end="")
    print(end, end="", flush=True)
