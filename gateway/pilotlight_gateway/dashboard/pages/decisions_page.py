"""Decisions: why did the controller do that?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pilotlight_core.model.ids import FUNCTION_PATTERN
from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    FormField,
    PageForm,
    Sentence,
    TextLines,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import count_text, plural
from pilotlight_gateway.dashboard.pages.incidents_page import event_table

TONES = {"running": "good", "starting": "warn", "waiting": "bad"}
REFUSED, SCALED = 4, 50


def decisions_blocks(told: Mapping[str, Any], function: str, scaled: Mapping[str, Any] | None = None) -> list[Block]:
    """The last decisions, of one function or of all."""
    listed = told["decisions"]
    waiting = sum(one["state"] == "waiting" for one in listed)
    text = f"{plural(len(listed), 'decision')}" + (f"; {waiting} wait for a place." if waiting else ".")
    form = PageForm(
        id="filter", action="/ui/decisions", submit="Show",
        fields=(FormField(name="function", label="Function (tenant:app.function)", value=function),),
    )  # fmt: skip
    return [
        Sentence(id="answer", text=text, tone="warn" if waiting else ""),
        form,
        DataTable(
            id="decisions", caption="Decisions of placement",
            columns=columns_of("Decided (UTC)", "Version", "State", "Where", "#Considered", "Refused by", "Because"),
            rows=rows_of([(f"{number} {one['container']}", _row(one)) for number, one in enumerate(listed)]),
            empty="The controller has decided nothing lately.",
        ),
        *([event_table("scaled", "Decisions of scaling, 24 hours", scaled["events"][::-1])] if scaled else []),
        *([TextLines(id="lines", label="In sentences", lines=tuple(told["lines"]))] if told["lines"] else []),
    ]  # fmt: skip


def _row(one: Mapping[str, Any]) -> tuple[Cell | str, ...]:
    winner = one.get("winner")
    where = f"{winner['node']} {winner['what']}" if winner else ""
    refused = sorted(one["refused"].items(), key=lambda item: -item[1])[:REFUSED]
    version = one.get("version") or one["function"]
    rival = ""
    if winner and one.get("losers"):
        loser = one["losers"][0]
        rival = f"best before {loser['node']} by {loser['step'] or 'order'}"
    return (
        one.get("decided_at", "")[:19].replace("T", " "),
        Cell(text=version, href=ui_link("/ui/decisions", function=one["function"])),
        Cell(text=one["state"], tone=TONES.get(one["state"], "")), where, count_text(one["considered"]),
        ", ".join(f"{name} {count:,}" for name, count in refused), one.get("reason") or rival,
    )  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    function = view.query.get("function", "")
    try:
        told = await view.read("/v1/placement/explain", function=function)
    except ApiProblem as problem:
        if problem.status not in (400, 404):
            raise
        told = {"lines": [problem.detail], "decisions": []}
    scaled = await view.read_if_there(
        "/v1/events", all="true", since="24h", limit=SCALED, kind="function.scaled", function=_local(function)
    )
    return decisions_blocks(told, function, scaled)


def _local(function: str) -> str:
    """Of a function that is well named; "": all."""
    return function if re.fullmatch(FUNCTION_PATTERN, function) else ""


DECISIONS_PAGE = Page(
    path="/ui/decisions", title="Decisions", question="Why did the controller do that?", section=Section.OPERATOR,
    draw=_draw, scopes=("operator",), every_s=5.0,
)  # fmt: skip
