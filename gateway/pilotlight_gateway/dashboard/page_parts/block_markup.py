"""Blocks as HTML, which shows all without script. The ids are those by which changes find their elements."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    CellBar,
    DataTable,
    Drawing,
    FigureList,
    FormField,
    Heading,
    LinkLine,
    PageForm,
    Sentence,
    TextLines,
    TimeChart,
)
from pilotlight_gateway.dashboard.page_parts.markup import Markup, escaped, joined, tag, void


def blocks_markup(blocks: Iterable[Block], csrf: str) -> Markup:
    """All of a page, in order. `csrf` goes into forms that change something."""
    return joined(_block(block, csrf) for block in blocks)


def _block(block: Block, csrf: str) -> Markup:
    match block:
        case Sentence():
            return tag("p", block.text, id=block.id, class_=f"sentence {block.tone}".strip())
        case Heading():
            return tag("h2", block.text, id=block.id)
        case FigureList():
            return _figures(block)
        case DataTable():
            return _table(block)
        case Drawing():
            return _drawing(block)
        case TimeChart():
            return _chart(block)
        case PageForm():
            return _form(block, csrf)
        case LinkLine():
            return _links(block)
        case TextLines():
            return _lines(block)


def _figures(block: FigureList) -> Markup:
    parts = (
        tag(
            "div",
            tag("dt", one.label),
            tag("dd", one.value, id=f"{block.id}-{one.key}", class_=one.tone or None),
            tag("dd", one.note, id=f"{block.id}-{one.key}-note", class_="note") if one.note else "",
        )
        for one in block.figures
    )
    return tag("dl", *parts, id=block.id, class_="figures")


def _table(block: DataTable) -> Markup:
    numeric = [column.numeric for column in block.columns]
    head = joined(
        tag("th", column.name, scope="col", class_="number" if column.numeric else None) for column in block.columns
    )
    rows = joined(
        tag("tr", joined(_cell(cell, place, numeric[place]) for place, cell in enumerate(row.cells)), data_key=row.key)
        for row in block.rows
    )
    table = tag(
        "table",
        tag("caption", block.caption),
        tag("thead", tag("tr", head)),
        tag("tbody", rows),
        id=block.id,
        data_numeric="".join("1" if one else "0" for one in numeric),
    )
    # A wide table scrolls by itself, by the keyboard too.
    scroll = tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=block.caption)
    empty = tag("p", block.empty, class_="empty", id=f"{block.id}-empty", hidden=bool(block.rows))
    note = tag("p", block.note, class_="note", id=f"{block.id}-note") if block.note else ""
    if block.folded:
        return tag("details", tag("summary", f"{block.caption}, as a table"), scroll, empty, note)
    return joined((scroll, empty, note))


def _cell(cell: Cell, place: int, numeric: bool) -> Markup:
    inner: str = tag("a", cell.text, href=cell.href) if cell.href else cell.text
    if cell.bar is not None:
        inner = joined((_bar(cell.bar), tag("span", cell.text)))
    classes = " ".join(filter(None, ("number" if numeric else "", cell.tone))) or None
    if place == 0:
        return tag("th", inner, scope="row", class_=classes)
    return tag("td", inner, class_=classes)


def _bar(bar: CellBar) -> Markup:
    """What the page's module draws too, of rows that come later."""
    part = f"{min(1.0, max(0.0, bar.part)):.4g}"
    return tag("span", tag("progress", value=part), class_=f"bar {bar.scale}", aria_hidden="true")


def _drawing(block: Drawing) -> Markup:
    return tag(
        "figure",
        Markup(
            f'<svg role="img" aria-label="{escaped(block.label)}" viewBox="0 0 {block.width} {block.height}" '
            f'width="{block.width}" height="{block.height}">{block.inner}</svg>'
        ),
        id=block.id,
        class_="drawing scrolls" if block.scrolls else "drawing",
        data_shape=block.shape,
        tabindex=0 if block.scrolls else None,
    )


def _chart(block: TimeChart) -> Markup:
    head = joined(tag("th", name, scope="col", class_="number") for name in block.names)
    rows = joined(
        tag(
            "tr",
            tag("th", datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S"), scope="row", data_at=at),
            *(tag("td", _value(values[place]), class_="number") for values in block.values),
        )
        for place, at in enumerate(block.at)
    )
    table = tag(
        "table",
        tag("caption", f"{block.title}, {block.unit}"),
        tag("thead", tag("tr", tag("th", "UTC", scope="col"), head)),
        tag("tbody", rows),
        id=f"{block.id}-table",
    )
    scroll = tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=block.title)
    return tag(
        "figure",
        tag("figcaption", f"{block.title}, {block.unit}"),
        tag("div", class_="plot", data_chart=f"{block.id}-table", data_unit=block.unit),
        tag("details", tag("summary", f"{block.title}, as a table"), scroll),
        id=block.id,
        class_="chart",
    )


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _form(block: PageForm, csrf: str) -> Markup:
    hidden = void("input", type="hidden", name="csrf", value=csrf) if block.method == "post" else ""
    fields = (_field(one, f"{block.id}-{one.name}") for one in block.fields)
    confirm = tag("span", block.confirm, class_="note") if block.confirm else ""
    return tag(
        "form", hidden, *fields, tag("button", block.submit), confirm,
        id=block.id, method=block.method, action=block.action, class_="inline",
    )  # fmt: skip


def _field(one: FormField, name: str) -> Markup:
    if not one.label:
        return void("input", type="hidden", name=one.name, value=one.value)
    label = tag("label", one.label, for_=name)
    if one.options:
        choices = (tag("option", text or "all", value=text, selected=text == one.value) for text in one.options)
        return joined((label, " ", tag("select", *choices, id=name, name=one.name), " "))
    return joined((label, " ", void("input", id=name, name=one.name, value=one.value, type=one.kind), " "))


def _links(block: LinkLine) -> Markup:
    links = (
        tag("li", tag("a", text, href=href, aria_current="true" if present else None))
        for text, href, present in block.links
    )
    return tag("nav", tag("ul", *links), id=block.id, aria_label=block.label, class_="links")


def _lines(block: TextLines) -> Markup:
    return tag(
        "pre", joined(tag("span", line) for line in block.lines),
        id=block.id, class_="lines", tabindex="0", role="log", aria_label=block.label,
    )  # fmt: skip
