"""What is around each page: head, navigation, and the places that its modules need."""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_gateway.dashboard.page_parts.markup import Markup, joined, tag, void
from pilotlight_gateway.dashboard.page_parts.page import Page, Section
from pilotlight_gateway.dashboard.page_parts.viewers import Viewer

SECTIONS = {Section.TENANT: "Your tenant", Section.OPERATOR: "The platform"}


def whole_page(
    *,
    title: str,
    body: Markup,
    assets: str,
    viewer: Viewer | None = None,
    pages: Iterable[Page] = (),
    present: Page | None = None,
    topic: str = "",
) -> bytes:
    """A page as HTML. `assets`: where its files are; `topic`: by which the stream knows it, "" without changes."""
    head = joined((
        void("meta", charset="utf-8"),
        tag("title", f"{title} · Pilotlight"),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        void("link", rel="icon", href=f"{assets}/icon.svg"),
        void("link", rel="stylesheet", href=f"{assets}/look.css"),
        _scripts(assets, present, topic),
    ))  # fmt: skip
    inside = joined((
        tag("a", "Skip to the page", href="#main", class_="skip"),
        _header(viewer, pages, present),
        tag("main", tag("h1", title), body, id="main", tabindex="-1"),
        tag("footer", _live_note(topic)),
    ))  # fmt: skip
    data = {"data_topic": topic or None, "data_assets": assets}
    return f"<!doctype html>{tag('html', tag('head', head), tag('body', inside, **data), lang='en')}".encode()


def _scripts(assets: str, present: Page | None, topic: str) -> Markup:
    if not topic:
        return Markup("")
    module = tag("script", type="module", src=f"{assets}/live.js")
    if present is None or not present.charts:
        return module
    chart = joined((
        void("link", rel="stylesheet", href=f"{assets}/vendor/uPlot.min.css"),
        tag("script", src=f"{assets}/vendor/uPlot.iife.min.js", defer=True),
        tag("script", type="module", src=f"{assets}/charts.js"),
    ))  # fmt: skip
    return joined((chart, module))


def _live_note(topic: str) -> Markup:
    note = "This page is of the instant at which it was loaded." if topic else ""
    return tag("p", note, id="live", role="status", class_="note")


def _header(viewer: Viewer | None, pages: Iterable[Page], present: Page | None) -> Markup:
    mark = tag("span", "Pilotlight", class_="brand")
    if viewer is None:
        return tag("header", mark)
    form = tag(
        "form",
        void("input", type="hidden", name="csrf", value=viewer.csrf),
        tag("span", viewer.tenant, class_="who"),
        " ",
        tag("button", "Log out"),
        method="post",
        action="/ui/logout",
        class_="logout",
    )
    return tag("header", mark, _navigation(viewer, list(pages), present), form)


def _navigation(viewer: Viewer, pages: list[Page], present: Page | None) -> Markup:
    parts = []
    for section, name in SECTIONS.items():
        shown = [page for page in pages if page.section is section and page.listed and viewer.may(*page.scopes)]
        if not shown:
            continue
        links = (
            tag("li", tag("a", page.title, href=page.path, title=page.question, aria_current=_current(page, present)))
            for page in shown
        )
        parts.append(tag("nav", tag("span", name, class_="section", id=f"nav-{section}"), tag("ul", *links),
                         aria_labelledby=f"nav-{section}"))  # fmt: skip
    return joined(parts)


def _current(page: Page, present: Page | None) -> str | None:
    return "page" if page is present else None
