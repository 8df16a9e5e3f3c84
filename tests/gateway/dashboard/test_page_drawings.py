"""A page is drawn once a second for all who are told the same."""

from __future__ import annotations

import asyncio

from pilotlight_gateway.dashboard.page_drawings import PageDrawings
from pilotlight_gateway.dashboard.page_parts.blocks import Block, Sentence
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section
from tests.gateway.dashboard.page_parts.test_viewers import viewer
from tests.gateway.dashboard.site import Site

drawn: list[str] = []


async def _draw(view: PageView) -> list[Block]:
    drawn.append(view.viewer.tenant)
    await asyncio.sleep(0)
    if "fail" in view.query:
        raise ApiProblem(int(view.query["fail"]), "code", "The API's words.")
    return [Sentence(id="answer", text=f"{len(drawn)} {view.words}")]


PAGE = Page(path="/ui/x/{id}", title="X", question="?", section=Section.TENANT, draw=_draw)


async def test_those_who_are_told_the_same_share_a_drawing(site: Site) -> None:
    """For a second, and with it what has changed since the one before."""
    drawn.clear()
    drawings = PageDrawings(site.answers, (PAGE,), clock=site.world.clock, wall=site.world.wall)
    one, other = viewer("read"), viewer("read", token=f"pl_session_{43 * 'y'}")
    first, second = await asyncio.gather(
        drawings.draw(one, PAGE, {"id": "a"}, {}, "/ui/x/a"), drawings.draw(other, PAGE, {"id": "a"}, {}, "/ui/x/a")
    )
    assert first is second
    operator = await drawings.draw(viewer("read", "operator"), PAGE, {"id": "a"}, {}, "/ui/x/a")
    assert operator is not first
    site.world.clock.at += 1.0
    third = await drawings.draw(one, PAGE, {"id": "a"}, {}, "/ui/x/a")
    assert third.changes_since(first) == b'{"text":[["answer","3 {\'id\': \'a\'}","sentence"]]}'
    assert third.changes_since(first) is third.changes_since(second)
    assert third.changes_since(third) == b""


async def test_a_refusal_is_a_page(site: Site) -> None:
    """With the API's status and words; where no gateway answers it is 503."""
    drawings = PageDrawings(site.answers, (PAGE,), clock=site.world.clock, wall=site.world.wall)
    for asked, status in (("404", 404), ("0", 503)):
        drawing = await drawings.draw(viewer("read"), PAGE, {}, {"fail": asked}, f"/ui/x/a?fail={asked}")
        assert (drawing.status, drawing.blocks) == (
            status, (Sentence(id="problem", text="The API's words.", tone="bad"),),
        )  # fmt: skip


async def test_who_may_not_see_a_page_is_told_which_scope_it_needs(site: Site) -> None:
    """Before anything is asked."""
    drawn.clear()
    drawings = PageDrawings(site.answers, (PAGE,), clock=site.world.clock, wall=site.world.wall)
    drawing = await drawings.draw(viewer("invoke"), PAGE, {}, {}, "/ui/x/a")
    assert (drawing.status, drawn) == (403, [])
    assert "the scope read" in str(drawing.blocks[0])
    assert drawings.find("/ui/x/a") == (PAGE, {"id": "a"})


async def test_drawings_are_bounded(site: Site) -> None:
    """Whatever addresses somebody asks for."""
    drawings = PageDrawings(site.answers, (PAGE,), clock=site.world.clock, wall=site.world.wall)
    for n in range(300):
        await drawings.draw(viewer("read"), PAGE, {}, {}, f"/ui/x/{n}")
    assert len(drawings) <= 256
