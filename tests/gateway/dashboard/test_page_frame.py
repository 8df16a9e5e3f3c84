"""What is around each page."""

from __future__ import annotations

from pilotlight_gateway.dashboard.all_pages import PAGES
from pilotlight_gateway.dashboard.page_frame import whole_page
from pilotlight_gateway.dashboard.page_parts.markup import Markup
from pilotlight_gateway.dashboard.page_parts.page import Page, Section
from pilotlight_gateway.dashboard.pages.nodes_page import NODE_PAGE, NODES_PAGE
from tests.gateway.dashboard.page_parts.test_viewers import viewer


async def _draw(_: object) -> list[object]:
    return []


CHARTED = Page(
    path="/ui/c", title="C", question="?", section=Section.TENANT, draw=_draw, charts=True,  # type: ignore[arg-type]
)  # fmt: skip


def page(present: Page | None = None, topic: str = "", *scopes: str) -> str:
    who = viewer(*scopes) if scopes else None
    return whole_page(
        title="<T>", body=Markup("<p>B</p>"), assets="/a", viewer=who, pages=PAGES, present=present, topic=topic
    ).decode()


def test_the_navigation_has_what_its_viewer_may_see() -> None:
    """The present page is marked; pages of one thing are in none."""
    made = page(NODES_PAGE, "/ui/nodes", "operator")
    assert 'href="/ui/nodes" title="Who is there, and who leaves?" aria-current="page"' in made
    assert made.count('aria-current="page"') == 1
    assert NODE_PAGE.path not in made
    assert "/ui/functions" not in made
    assert "/ui/nodes" not in page(None, "", "read")
    assert "<nav" not in page()


def test_a_page_without_changes_has_no_script() -> None:
    """One with charts has the library too; titles are escaped."""
    assert "<script" not in page(NODES_PAGE, "", "operator")
    made = page(NODES_PAGE, '/ui/nodes?a="b', "operator")
    assert 'data-topic="/ui/nodes?a=&quot;b"' in made
    assert made.count("<script") == 1
    assert "<h1>&lt;T&gt;</h1>" in made
    assert page(CHARTED, "/ui/c", "read").count("<script") == 3
