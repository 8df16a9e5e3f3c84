"""Blocks as HTML: all is there without script, and the elements have the ids by which changes find them."""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.page_parts.blocks import (
    BarScale,
    Block,
    Cell,
    CellBar,
    DataTable,
    Drawing,
    Figure,
    FigureList,
    FormField,
    Heading,
    LinkLine,
    PageForm,
    Sentence,
    TextLines,
    TimeChart,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.markup import Markup


def html(block: Block) -> str:
    return blocks_markup([block], "token")


def test_a_sentence_and_a_heading() -> None:
    """With the tone as a class."""
    assert html(Sentence(id="answer", text="a < b", tone="bad")) == ('<p id="answer" class="sentence bad">a &lt; b</p>')
    assert html(Heading(id="h", text="H")) == '<h2 id="h">H</h2>'


def test_a_table_has_its_caption_its_heads_and_its_rows_names() -> None:
    """Numbers are marked as such; where no row is, a sentence is shown in their place."""
    rows = rows_of([("k", (Cell(text="n", href="/ui/x?a=1&b=2"), Cell(text="7", tone="warn")))])
    table = DataTable(id="t", caption="C", columns=columns_of("Name", "#Count"), rows=rows, note="1 of 2")
    made = html(table)
    assert '<caption>C</caption><thead><tr><th scope="col">Name</th><th scope="col" class="number">Count</th>' in made
    assert '<tr data-key="k"><th scope="row"><a href="/ui/x?a=1&amp;b=2">n</a></th>' in made
    assert '<td class="number warn">7</td></tr>' in made
    assert 'id="t" data-numeric="01"' in made
    assert '<p class="empty" id="t-empty" hidden>' in made
    assert '<p class="note" id="t-note">1 of 2</p>' in made
    empty = html(DataTable(id="t", caption="C", columns=(), rows=(), empty="None.", folded=True))
    assert '<p class="empty" id="t-empty">None.</p>' in empty
    assert empty.startswith("<details><summary>C, as a table</summary>")


def test_figures_have_ids_of_their_own() -> None:
    """Also their notes."""
    figure = Figure(key="free", label="Free", value="3", note="30 %", tone="good")
    made = html(FigureList(id="now", figures=(figure,)))
    assert '<dt>Free</dt><dd id="now-free" class="good">3</dd>' in made
    assert '<dd id="now-free-note" class="note">30 %</dd>' in made


def test_a_drawing_says_what_it_is() -> None:
    """For who does not see it; its geometry is in attributes."""
    drawing = Drawing(id="d", label='a "b"', inner=Markup("<rect/>"), width=10, height=5, shape="s")
    assert html(drawing) == (
        '<figure id="d" class="drawing" data-shape="s"><svg role="img" aria-label="a &quot;b&quot;" '
        'viewBox="0 0 10 5" width="10" height="5"><rect/></svg></figure>'
    )


def test_a_chart_is_a_table_first() -> None:
    """The module that draws reads it."""
    made = html(TimeChart(id="c", title="Calls", unit="1/s", names=("a",), at=(0.0, 60.0), values=((1.0, None),)))
    assert '<th scope="row" data-at="60.0">00:01:00</th><td class="number"></td>' in made
    assert 'data-chart="c-table"' in made
    assert "<table><" not in made
    assert 'id="c-table"' in made


def test_forms_that_change_something_have_the_token() -> None:
    """Those that only ask have not: it would be in addresses."""
    fields = (
        FormField(name="kind", label="Kind", value="b", options=("", "a", "b")),
        FormField(name="hidden", value="v"),
        FormField(name="node", label="Node", value='"'),
    )
    get = html(PageForm(id="f", action="/ui/x", submit="Go", fields=fields))
    assert "token" not in get
    assert '<option value="b" selected>b</option>' in get
    assert '<option value="">all</option>' in get
    assert '<input type="hidden" name="hidden" value="v">' in get
    assert '<label for="f-node">Node</label> <input id="f-node" name="node" value="&quot;" type="text">' in get
    post = html(PageForm(id="f", action="/ui/do/x", submit="Go", method="post", confirm="Sure?"))
    assert '<input type="hidden" name="csrf" value="token">' in post
    assert '<span class="note">Sure?</span>' in post


def test_links_and_lines() -> None:
    """The present one is marked; lines stay lines."""
    made = html(LinkLine(id="l", label="Parts", links=(("1", "/ui/a", True), ("2", "/ui/b", False))))
    assert '<a href="/ui/a" aria-current="true">1</a>' in made
    assert '<a href="/ui/b">2</a>' in made
    assert "<span>&lt;a&gt;</span><span>b</span>" in html(TextLines(id="t", label="Logs", lines=("<a>", "b")))


def test_a_bar_is_beside_its_text_for_who_sees() -> None:
    """Within its length, whatever it is of; who hears hears the text."""
    cells = (Cell(text="x"), Cell(text="25", bar=CellBar(part=0.25)),
             Cell(text="<9", bar=CellBar(part=7.0, scale=BarScale.EVIDENCE)))  # fmt: skip
    table = DataTable(id="t", caption="T", columns=columns_of("a", "b", "c"), rows=rows_of([("k", cells)]))
    assert (
        '<td><span class="bar part" aria-hidden="true"><progress value="0.25"></progress></span><span>25</span></td>'
        '<td><span class="bar evidence" aria-hidden="true"><progress value="1"></progress></span>'
        "<span>&lt;9</span></td>"
    ) in html(table)


def test_a_drawing_that_scrolls_does_so_by_the_keyboard_too() -> None:
    drawing = Drawing(id="d", label="D", inner=Markup(""), width=9, height=1, scrolls=True)
    assert '<figure id="d" class="drawing scrolls" data-shape="" tabindex="0">' in html(drawing)
