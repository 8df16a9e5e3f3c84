"""Incidents: what happened on the whole platform, and what was decided?"""

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
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section
from pilotlight_gateway.dashboard.page_parts.shown_values import instant_text, plural, time_text

SHOWN = 200
SINCE = ("1h", "24h", "7d")
KINDS = ("", "function", "container", "breaker", "flow", "calls", "node", "budget", "slo")
TONES = {
    "breaker.opened": "bad", "flow.slowed": "bad", "node.lost": "bad", "calls.shed": "warn", "budget.spent": "warn",
    "breaker.closed": "good", "flow.recovered": "good", "budget.free": "good",
}  # fmt: skip


def incidents_blocks(told: Mapping[str, Any], query: Mapping[str, str], at: float) -> list[Block]:
    """The last events that were asked for, the newest first."""
    listed = list(reversed(told["events"]))
    text = "Nothing has happened in this time."
    if listed:
        text = f"{plural(len(listed), 'event')}; the last one {time_text(max(0.0, at - listed[0]['at']) * 1000)} ago."
    fields = (
        FormField(name="kind", label="Kind", value=query.get("kind", ""), options=KINDS),
        FormField(name="since", label="Since", value=since_of(query), options=SINCE),
    )
    return [
        Sentence(id="answer", text=text),
        PageForm(id="filter", action="/ui/incidents", submit="Show", fields=fields),
        event_table("events", "Events", listed),
    ]


def event_table(name: str, caption: str, events: Sequence[Mapping[str, Any]]) -> DataTable:
    """Events as rows."""
    return DataTable(
        id=name, caption=caption, columns=columns_of("At (UTC)", "Kind", "Tenant", "What happened"),
        rows=rows_of([
            (str(one["id"]),
             (instant_text(one["at"]), Cell(text=one["kind"], tone=TONES.get(one["kind"], "")),
              one["tenant"] or "the platform", one["says"]))
            for one in events
        ]),
        empty="None.", note=f"At most the last {SHOWN}.",
    )  # fmt: skip


def since_of(query: Mapping[str, str]) -> str:
    """How far back the page goes."""
    since = query.get("since", "")
    return since if since in SINCE else SINCE[1]


def kind_of(query: Mapping[str, str]) -> str:
    """How the kinds of events begin that it shows; "": all."""
    kind = query.get("kind", "")
    return kind if kind in KINDS else ""


async def _draw(view: PageView) -> list[Block]:
    asked = {"since": since_of(view.query), "kind": kind_of(view.query), "limit": SHOWN}
    told = await view.read("/v1/events", all="true", **asked)
    return incidents_blocks(told, view.query, view.at)


INCIDENTS_PAGE = Page(
    path="/ui/incidents", title="Incidents", question="What happened, and what was decided?",
    section=Section.OPERATOR, draw=_draw, scopes=("operator",), every_s=5.0,
)  # fmt: skip
