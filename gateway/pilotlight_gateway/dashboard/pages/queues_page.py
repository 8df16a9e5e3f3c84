"""Queues: who waits, since when, and why?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import Block, Cell, DataTable, Sentence, columns_of, rows_of
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section
from pilotlight_gateway.dashboard.page_parts.shown_values import count_text, plural, time_text

TONES = {"crash_loop": "bad", "no_capacity": "bad", "breaker_open": "bad", "full": "warn", "starting": "warn"}
WORDS = {
    "crash_loop": "cannot be loaded", "no_capacity": "no place", "breaker_open": "breaker open", "full": "slots taken",
    "starting": "starting", "running": "runs", "": "runs",
}  # fmt: skip


def queues_blocks(queues: Mapping[str, Any]) -> list[Block]:
    """Of the queues of all homes."""
    listed = queues["queues"]
    waiting = [one for one in listed if one["queued"]]
    text = "No call waits."
    if waiting:
        first = waiting[0]
        many = plural(queues["queued"], "call waits", "calls wait")
        text = f"{many}, the first one for {time_text(first['oldest_ms'])}: {first['version']}. {first['sentence']}"
    flows = [(one, flow) for one in waiting for flow in one["flows"]]
    return [
        Sentence(id="answer", text=text, tone=TONES.get(waiting[0]["why"], "") if waiting else "good"),
        DataTable(
            id="queues", caption="Versions with calls",
            columns=columns_of("Version", "#Wait", "#First waits", "#Last will wait", "#Run", "#Slots", "#Ready",
                               "#Starting", "Why", "Because"),
            rows=rows_of([(f"{one['gateway']} {one['version']}", _row(one)) for one in listed]),
            empty="No version has a call.",
            note=f"{plural(len(listed), 'version')}, the longest wait first; {queues['left']:,} more have calls.",
        ),
        DataTable(
            id="flows", caption="Who waits: tenants' calls by class",
            columns=columns_of("Version", "Tenant", "Class", "#Wait", "#First waits"),
            rows=rows_of([
                (f"{one['version']} {flow['tenant']} {flow['priority']}",
                 (one["version"], flow["tenant"], flow["priority"], count_text(flow["queued"]),
                  time_text(flow["oldest_ms"])))
                for one, flow in flows
            ]),
            empty="Nobody does.",
        ),
    ]  # fmt: skip


def _row(one: Mapping[str, Any]) -> tuple[Cell | str, ...]:
    return (
        one["version"], count_text(one["queued"]), time_text(one["oldest_ms"] if one["queued"] else None),
        time_text(one["expected_ms"] if one["queued"] else None), count_text(one["running"]), count_text(one["slots"]),
        count_text(one["ready"]), count_text(one["starting"]),
        Cell(text=WORDS.get(one["why"], one["why"]), tone=TONES.get(one["why"], "")), one["sentence"],
    )  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    return queues_blocks(await view.read("/v1/queues"))


QUEUES_PAGE = Page(
    path="/ui/queues", title="Queues", question="Who waits, since when, and why?", section=Section.OPERATOR,
    draw=_draw, scopes=("operator",),
)  # fmt: skip
