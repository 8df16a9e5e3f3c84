"""Calls: which were slow, or failed? Those that are kept, the newest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    FormField,
    LinkLine,
    PageForm,
    Sentence,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, filled, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import count_text, instant_text, plural, time_text

MOST_CALLS = 100
KEPT = {"": "all kept", "error": "failed", "slow": "slow", "asked": "asked for", "sampled": "sampled"}
TONE_OF = {"error": "bad", "slow": "warn"}


def call_link(name: str) -> str:
    """The page of one call."""
    return filled("/ui/calls/{id}", {"id": name}) if name else ""


def function_link(function: str) -> str:
    """The page of an own function; "" of another tenant's."""
    return filled("/ui/functions/{function}", {"function": function}) if function and ":" not in function else ""


def calls_blocks(listed: Mapping[str, Any], function: str = "", kept: str = "") -> list[Block]:
    """Of the kept calls that were asked for."""
    calls = listed["calls"]
    why = Counter(one["kept"] for one in calls)
    text = f"{plural(why['error'], 'call')} failed and {plural(why['slow'], 'was', 'were')} slow"
    text += f", of the last {plural(len(calls), 'call')} that are kept." if calls else ": none is kept."
    silent = listed["unanswered"]
    return [
        Sentence(id="answer", text=text, tone="warn" if why["error"] else ""),
        *([Sentence(id="silent", tone="bad", text=f"Not known: what {plural(len(silent), 'gateway')} keeps, "
                    "of which there was no answer: load the page again.")] if silent else []),
        LinkLine(id="kept", label="Which of them", links=tuple(
            (title, ui_link("/ui/calls", function=function, kept=one), one == kept) for one, title in KEPT.items()
        )),
        PageForm(
            id="filter", action="/ui/calls", submit="Show",
            fields=(FormField(name="function", label="Function", value=function), FormField(name="kept", value=kept)),
        ),
        DataTable(
            id="calls", caption="Calls",
            columns=columns_of("Call", "Arrived (UTC)", "Function", "Kept", "Outcome", "#Took", "Most of it", "#Of it",
                               "Cold", "#Attempts"),
            rows=rows_of([(one["id"], _row(one)) for one in calls]),
            empty="There is none: calls are kept that fail, are slower than their function's service level, are "
                  "sampled, or ask for it by their traceparent.",
        ),
    ]  # fmt: skip


def _row(one: Mapping[str, Any]) -> tuple[Cell | str, ...]:
    return (
        Cell(text=one["id"], href=call_link(one["id"])), instant_text(one["arrived_at"]),
        Cell(text=one["version"] or one["function"], href=function_link(one["function"])),
        Cell(text=KEPT.get(one["kept"], one["kept"]), tone=TONE_OF.get(one["kept"], "")),
        Cell(text=one["code"] or "ok", tone="bad" if one["code"] else ""), time_text(one["total_ms"]),
        one["longest"], time_text(one["longest_ms"]), "cold" if one["cold_start"] else "",
        count_text(one["attempts"]),
    )  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    function, kept = view.query.get("function", "").strip(), view.query.get("kept", "")
    kept = kept if kept in KEPT else ""
    listed = await view.read("/v1/calls", function=function, kept=kept, limit=MOST_CALLS)
    return calls_blocks(listed, function, kept)


CALLS_PAGE = Page(
    path="/ui/calls", title="Calls", question="Which were slow, or failed?", section=Section.TENANT, draw=_draw,
    scopes=("invoke", "read"),
)  # fmt: skip
