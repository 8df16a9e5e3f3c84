"""Webhooks: do they arrive?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart, read_part, unanswered
from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    Sentence,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, filled
from pilotlight_gateway.dashboard.page_parts.shown_values import count_text, instant_text, plural, short_text, time_text
from pilotlight_gateway.dashboard.pages.own.calls_page import call_link

MOST_WEBHOOKS = 16
"""As many as a tenant may have."""
MOST_DELIVERIES = 50
"""Of one webhook, the newest."""
MOST_ROWS = 100
LONGEST_TEXT = 200


def webhooks_blocks(listed: Mapping[str, Any], deliveries: Sequence[AnsweredPart]) -> list[Block]:
    """Of all webhooks, and of the last deliveries of each, in the same order."""
    webhooks = listed["webhooks"]
    failing = [one for one in webhooks if one["failing_since"] is not None or one["disabled"]]
    text = f"{plural(len(webhooks), 'webhook')}: what is sent to them arrives."
    if failing:
        text = f"{plural(len(failing), 'webhook')} of {len(webhooks)} cannot be reached, or nothing is sent to it."
    known = [(one, part) for one, part in zip(webhooks, deliveries, strict=False) if part.answered]
    missing = [part for part in deliveries if not part.answered]
    rows = [
        (f"{one['id']} {delivery['id']}", _delivery(one, delivery))
        for one, part in known
        for delivery in part.value["deliveries"]
        if _has_failed(delivery)
    ]
    return [
        Sentence(id="answer", text=text if webhooks else "There is no webhook.", tone="bad" if failing else ""),
        DataTable(
            id="webhooks", caption="Webhooks",
            columns=columns_of("Webhook", "Label", "Address", "Events", "State", "Failing since (UTC)", "Made (UTC)"),
            rows=rows_of([(one["id"], _webhook(one)) for one in webhooks]),
            empty="There is none: 'pilotlight webhook create' makes one.",
        ),
        *(unanswered("no-deliveries", "Deliveries of some", missing[0]) if missing else []),
        DataTable(
            id="deliveries", caption="Deliveries that have not arrived",
            columns=columns_of("Delivery", "Webhook", "Event", "About", "State", "#Attempts", "Last attempt (UTC)",
                               "#Status", "Error", "#Took", "Next attempt (UTC)"),
            rows=rows_of(rows[:MOST_ROWS]), note=f"{count_text(len(rows))} in all." if len(rows) > MOST_ROWS else "",
            empty="All have arrived, of the last ones of each webhook.",
        ),
    ]  # fmt: skip


def _webhook(one: Mapping[str, Any]) -> tuple[Cell | str, ...]:
    state = Cell(text="in use", tone="good")
    if one["disabled"]:
        state = Cell(text=f"disabled: {one['disabled_because']}", tone="bad")
    elif one["failing_since"] is not None:
        state = Cell(text="failing", tone="bad")
    return (
        one["id"], one["label"], short_text(one["url"], LONGEST_TEXT), ", ".join(one["events"]), state,
        instant_text(one["failing_since"]), instant_text(one["created_at"]),
    )  # fmt: skip


def _has_failed(delivery: Mapping[str, Any]) -> bool:
    """Whether it was tried in vain, or given up."""
    return delivery["state"] == "failed" or (delivery["state"] == "pending" and bool(delivery["attempts"]))


def _delivery(webhook: Mapping[str, Any], one: Mapping[str, Any]) -> tuple[Cell | str, ...]:
    last = max(one["attempts"], key=lambda attempt: attempt["at"], default=None)
    about = one["about"]
    return (
        one["id"], webhook["label"] or webhook["id"], one["event"],
        Cell(text=about, href=call_link(about) if about.startswith("call_") else ""),
        Cell(text=one["state"], tone="bad" if one["state"] == "failed" else "warn"), count_text(len(one["attempts"])),
        instant_text(last["at"] if last else None), count_text((last["status"] or None) if last else None),
        short_text(last["error"], LONGEST_TEXT) if last else "", time_text(last["ms"] if last else None),
        instant_text(one["next_at"]),
    )  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    listed = await view.read("/v1/webhooks")
    deliveries = await asyncio.gather(*(
        read_part(view, filled("/v1/webhooks/{id}/deliveries", {"id": one["id"]}), limit=MOST_DELIVERIES)
        for one in listed["webhooks"][:MOST_WEBHOOKS]
    ))  # fmt: skip
    return webhooks_blocks(listed, deliveries)


WEBHOOKS_PAGE = Page(
    path="/ui/webhooks", title="Webhooks", question="Do they arrive?", section=Section.TENANT, draw=_draw,
    scopes=("read", "deploy"), live=False,  # it asks for the deliveries of each webhook
)  # fmt: skip
