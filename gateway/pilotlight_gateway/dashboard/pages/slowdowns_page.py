"""Neighbours: whose calls do others slow down?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import Block, Cell, DataTable, Sentence, columns_of, rows_of
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section
from pilotlight_gateway.dashboard.page_parts.shown_values import count_text, number_text


def slowdowns_blocks(slowdowns: Mapping[str, Any]) -> list[Block]:
    """Of the flows that take five times as long as alone, or more."""
    listed = slowdowns["slowdowns"]
    text = "Nobody's calls take five times as long as alone."
    if listed:
        worst = listed[0]
        text = (
            f"Calls of {worst['tenant']} to {worst['function']} take {number_text(worst['slowdown'])} times as long as "
            f"alone; {worst['neighbour'] or 'nobody else'} holds most of the slots."
        )
    return [
        Sentence(id="answer", text=text, tone="bad" if listed else "good"),
        DataTable(
            id="slowdowns", caption="Flows that are slowed down",
            columns=columns_of("Tenant", "Class", "Function", "#Times as long", "#Calls", "Who holds most slots"),
            rows=rows_of([
                (f"{one['tenant']} {one['priority']} {one['version']}",
                 (one["tenant"], one["priority"], one["version"],
                  Cell(text=number_text(one["slowdown"]), tone="bad"), count_text(one["calls"]), one["neighbour"]))
                for one in listed
            ]),
            note="Against the same calls if their tenant were alone, over about its last twenty.",
        ),
    ]  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    return slowdowns_blocks(await view.read("/v1/slowdowns"))


SLOWDOWNS_PAGE = Page(
    path="/ui/slowdowns", title="Neighbours", question="Whose calls do others slow down?", section=Section.OPERATOR,
    draw=_draw, scopes=("operator",),
)  # fmt: skip
