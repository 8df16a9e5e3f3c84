"""Batches: how far are they?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    Sentence,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section
from pilotlight_gateway.dashboard.page_parts.shown_values import count_text, instant_text, plural
from pilotlight_gateway.dashboard.pages.own.calls_page import function_link
from pilotlight_gateway.dashboard.pages.own.jobs_page import ON_A_PAGE, page_links

BATCH_TONES = {"failed": "bad", "cancelling": "warn", "cancelled": "quiet", "completed": "good"}
ENDS = ("succeeded", "failed", "cancelled", "expired")


def batches_blocks(listed: Mapping[str, Any], after: str = "") -> list[Block]:
    """Of one page of them."""
    batches = listed["batches"]
    running = [one for one in batches if one["state"] == "running"]
    text = f"{plural(len(running), 'batch runs', 'batches run')}, of {len(batches)} on this page."
    if listed["has_more"]:
        text += " There are more."
    failed = any(one["state"] == "failed" or one["counts"]["failed"] for one in batches)
    return [
        Sentence(id="answer", text=text if batches else "There is no batch here.", tone="warn" if failed else ""),
        DataTable(
            id="batches", caption="Batches, the newest first",
            columns=columns_of("Batch", "Label", "Function", "State", "#Items", "#Submitted", "#Succeeded", "#Failed",
                               "#Cancelled", "#Expired", "Made (UTC)", "Ended (UTC)", "Why"),
            rows=rows_of([(one["id"], _row(one)) for one in batches]),
            empty="There is none: 'pilotlight batch submit' makes one.",
        ),
        *page_links("/ui/batches", listed["last_id"] if listed["has_more"] else "", after, name="after"),
    ]  # fmt: skip


def _row(one: Mapping[str, Any]) -> tuple[Cell | str, ...]:
    ends = [Cell(text=count_text(one["counts"][end]), tone="bad" if end == "failed" and one["counts"][end] else "")
            for end in ENDS]  # fmt: skip
    return (
        one["id"], one["label"], Cell(text=one["function"], href=function_link(one["function"].partition("@")[0])),
        Cell(text=one["state"], tone=BATCH_TONES.get(one["state"], "")), count_text(one["total"]),
        count_text(one["submitted"]), *ends, instant_text(one["created_at"]), instant_text(one["ended_at"]),
        one["reason"] or "",
    )  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    after = view.query.get("after", "")
    return batches_blocks(await view.read("/v1/batches", limit=ON_A_PAGE, after=after), after)


BATCHES_PAGE = Page(
    path="/ui/batches", title="Batches", question="How far are they?", section=Section.TENANT, draw=_draw,
    scopes=("invoke", "read"),
)  # fmt: skip
