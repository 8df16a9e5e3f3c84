"""Rollouts of all tenants: what changes on this platform, and what goes back?"""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.blocks import Block
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section
from pilotlight_gateway.dashboard.pages.own.rollouts_page import rollouts_blocks


async def _draw(view: PageView) -> list[Block]:
    told = await view.read("/v1/rollouts", all="true")
    return rollouts_blocks(told, view.viewer.tenant, of_all=True)


PLATFORM_ROLLOUTS_PAGE = Page(
    path="/ui/all-rollouts", title="All rollouts", question="What changes on this platform, and what goes back?",
    section=Section.OPERATOR, draw=_draw, scopes=("operator",), every_s=2.0,
)  # fmt: skip
