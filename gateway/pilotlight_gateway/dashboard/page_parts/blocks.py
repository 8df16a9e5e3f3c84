"""What pages are made of: plain values, which become HTML once and changes of it from then on. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from pilotlight_gateway.dashboard.page_parts.markup import Markup

TONES = ("", "good", "warn", "bad", "quiet")


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """The first line of a page, which answers its question, or a remark."""

    id: str
    text: str
    tone: str = ""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number with what it is."""

    key: str
    label: str
    value: str
    note: str = ""
    tone: str = ""


@dataclass(frozen=True, kw_only=True)
class FigureList:
    id: str
    figures: tuple[Figure, ...]


class BarScale(StrEnum):
    """What a bar in a cell is drawn to."""

    PART = "part"  # of a whole
    EVIDENCE = "evidence"  # E of a rollout, by its logarithm, with the two marks from which something follows


@dataclass(frozen=True, kw_only=True)
class CellBar:
    """A bar beside the text of a cell, which says the same."""

    part: float
    """Of its length, from 0 to 1."""
    scale: BarScale = BarScale.PART


@dataclass(frozen=True, kw_only=True)
class Cell:
    text: str
    href: str = ""
    tone: str = ""
    bar: CellBar | None = None
    """In the place of a link."""


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A row of a table; `key` tells it from the others of its table, whatever is in it."""

    key: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Column:
    name: str
    numeric: bool = False


@dataclass(frozen=True, kw_only=True)
class DataTable:
    """A table, whose first column names its rows."""

    id: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    empty: str = "There is none."
    note: str = ""
    """Beneath it, such as how many there are in all."""
    folded: bool = False
    """Whether it is shown on demand, as a drawing's table is."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """An SVG. What changes while its shape stays are the classes of its marks."""

    id: str
    label: str
    inner: Markup
    width: int
    height: int
    marks: dict[str, str] = field(default_factory=dict)
    """By the id of an element, its class."""
    shape: str = ""
    """Another one: the whole drawing has changed."""
    scrolls: bool = False
    """Whether it keeps its width where there is less room; else it shrinks."""


@dataclass(frozen=True, kw_only=True)
class TimeChart:
    """Values over time: a chart where there is script, and a table beside it."""

    id: str
    title: str
    unit: str
    names: tuple[str, ...]
    at: tuple[float, ...]
    """Unix seconds, rising."""
    values: tuple[tuple[float | None, ...], ...]
    """Of each name, as many as `at`."""


@dataclass(frozen=True, kw_only=True)
class FormField:
    """A field of a form: hidden where it has no label, a choice where it has options."""

    name: str
    value: str = ""
    label: str = ""
    options: tuple[str, ...] = ()
    kind: str = "text"


@dataclass(frozen=True, kw_only=True)
class PageForm:
    """What a page lets its viewer do: `get` filters, `post` changes something and says which page comes next."""

    id: str
    action: str
    submit: str
    fields: tuple[FormField, ...] = ()
    method: str = "get"
    confirm: str = ""
    """What is said beside the button."""


@dataclass(frozen=True, kw_only=True)
class Heading:
    id: str
    text: str


@dataclass(frozen=True, kw_only=True)
class LinkLine:
    """Links beside each other: (text, address, whether it is the present one)."""

    id: str
    label: str
    links: tuple[tuple[str, str, bool], ...]


@dataclass(frozen=True, kw_only=True)
class TextLines:
    """Lines as they were printed, such as logs; the newest last."""

    id: str
    label: str
    lines: tuple[str, ...]


Block = Sentence | FigureList | DataTable | Drawing | TimeChart | PageForm | Heading | LinkLine | TextLines


def rows_of(found: list[tuple[str, tuple[Cell | str, ...]]]) -> tuple[TableRow, ...]:
    """Rows of keys and cells, of which plain ones may be texts."""
    return tuple(
        TableRow(key=key, cells=tuple(cell if isinstance(cell, Cell) else Cell(text=cell) for cell in cells))
        for key, cells in found
    )


def columns_of(*names: str) -> tuple[Column, ...]:
    """Columns by their names; those that begin with # are numbers."""
    return tuple(Column(name=name.lstrip("#"), numeric=name.startswith("#")) for name in names)
