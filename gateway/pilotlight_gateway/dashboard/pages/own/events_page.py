"""Events: what happened to mine lately?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    FormField,
    PageForm,
    Sentence,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from pilotlight_gateway.dashboard.page_parts.page import ABSENT, Page, PageView, Section
from pilotlight_gateway.dashboard.page_parts.shown_values import instant_text, plural, short_text
from pilotlight_gateway.dashboard.pages.own.calls_page import function_link

MOST_EVENTS, LONGEST_SENTENCE = 150, 300
EVENT_TONES = {
    "breaker.opened": "bad", "calls.shed": "bad", "node.lost": "bad", "flow.slowed": "warn", "budget.spent": "warn",
}  # fmt: skip


def events_blocks(
    told: Sequence[Mapping[str, Any]] | None, tenant: str, function: str = "", kind: str = ""
) -> list[Block]:
    """Of the last events, the newest first. None: this release has none."""
    if told is None:
        return [Sentence(id="answer", text="Not known: the gateways of this release keep no events.", tone="quiet")]
    events = told[::-1][:MOST_EVENTS]
    text = f"{plural(len(events), 'event')}; the last: {events[0]['says']}" if events else "Nothing happened lately."
    return [
        Sentence(id="answer", text=text),
        PageForm(
            id="filter", action="/ui/events-log", submit="Show",
            fields=(FormField(name="function", label="Function", value=function),
                    FormField(name="kind", label="Kind", value=kind)),
        ),
        DataTable(
            id="events", caption="Events, the newest first", columns=columns_of("At (UTC)", "Kind", "Function", "What"),
            rows=rows_of([(str(one["id"]), _row(one, tenant)) for one in events]), empty="There is none.",
        ),
    ]  # fmt: skip


def _row(one: Mapping[str, Any], tenant: str) -> tuple[Cell | str, ...]:
    own = one["function"].removeprefix(f"{tenant}:")
    return (
        instant_text(one["at"]), Cell(text=one["kind"], tone=EVENT_TONES.get(one["kind"], "")),
        Cell(text=own, href=function_link(own)), short_text(one["says"], LONGEST_SENTENCE),
    )  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    function, kind = view.query.get("function", "").strip(), view.query.get("kind", "").strip()
    try:
        events = await view.follow("/v1/events", function=function, kind=kind, limit=MOST_EVENTS)
    except ApiProblem as problem:
        if problem.status not in ABSENT:
            raise
        events = None
    return events_blocks(events, view.viewer.tenant, function, kind)


EVENTS_PAGE = Page(
    path="/ui/events-log", title="Events", question="What happened to mine lately?", section=Section.TENANT, draw=_draw,
)  # fmt: skip
