"""One call: where its time went, why it was slow or refused, and what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pilotlight_core.model.units import UNIT_PRICES
from pilotlight_gateway.dashboard.drawings.waterfall import waterfall
from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart, read_part, unanswered
from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    Figure,
    FigureList,
    Heading,
    LinkLine,
    Sentence,
    TextLines,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, filled, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import (
    count_text,
    instant_text,
    money_text,
    number_text,
    short_text,
    time_text,
)
from pilotlight_gateway.dashboard.pages.own.calls_page import KEPT, call_link, function_link

NOT_FOUND = 404
LONGEST_ERROR = 8_000
MOST_NESTED = 50
MOST_LINES = 100


def call_blocks(name: str, status: AnsweredPart, explained: AnsweredPart, receipt: AnsweredPart) -> list[Block]:
    """Of what is known of a call: its state, where its time went, and its receipt."""
    return [
        *_answer(name, status, explained),
        *_links(status, explained),
        *(_explained(explained.value) if explained.answered else []),
        *(_error(status.value) if status.answered else []),
        Heading(id="cost", text="What it cost"),
        *unanswered("no-receipt", "Its receipt", receipt),
        *(_receipt(receipt.value) if receipt.answered else []),
    ]


def _answer(name: str, status: AnsweredPart, explained: AnsweredPart) -> list[Block]:
    if explained.answered:
        told = explained.value
        first, *more = told["sentences"] or (f"{name} took {time_text(told['total_ms'])}.",)
        return [
            Sentence(id="answer", text=first, tone="bad" if told["code"] else ""),
            *([TextLines(id="because", label="Why", lines=tuple(more))] if more else []),
        ]
    state = status.value["state"] if status.answered else "not known"
    return [
        Sentence(id="answer", text=f"The call {name} is {state}.", tone="bad" if state == "failed" else ""),
        *unanswered("not-kept", "Where its time went", explained),
    ]


def _links(status: AnsweredPart, explained: AnsweredPart) -> list[Block]:
    """To its function, and to what it printed."""
    version = explained.value["version"] if explained.answered else status.value["version"] if status.answered else ""
    function = explained.value["function"] if explained.answered else version.partition("@")[0]
    run = (status.value.get("run") if status.answered else "") or ""
    name = explained.value["id"] if explained.answered else status.value["id"] if status.answered else ""
    links = []
    if own := function_link(function):
        links += [
            (version or function, own, False),
            ("What it printed", ui_link("/ui/logs", function=function, call=run or name), False),
        ]
    if run and run != name:
        links.append(("The job's last run", call_link(run), False))
    return [LinkLine(id="links", label="About this call", links=tuple(links))] if links else []


def _explained(told: Mapping[str, Any]) -> list[Block]:
    figures = (
        Figure(key="took", label="Took", value=time_text(told["total_ms"])),
        Figure(key="arrived", label="Arrived (UTC)", value=instant_text(told["arrived_at"])),
        Figure(key="outcome", label="Outcome", value=told["code"] or "ok", tone="bad" if told["code"] else "good"),
        Figure(key="kept", label="Kept", value=KEPT.get(told["kept"], told["kept"])),
        Figure(key="batch", label="Batch size", value=count_text(told["batch_size"] or None)),
    )
    trace = f"Its trace is {told['trace_id']}." if told["trace_id"] else "It has no trace."
    return [
        FigureList(id="now", figures=figures),
        Heading(id="time", text="Where its time went"),
        waterfall("waterfall", "Where its time went, from left to right: the table below has the same", told["rows"],
                  told["total_ms"]),
        DataTable(
            id="parts", caption="Time by part",
            columns=columns_of("Part", "Step of", "#Attempt", "#Begins at", "#Takes"),
            rows=rows_of([
                (f"{place}", (one["name"], one["step_of"], count_text(one["attempt"] or None),
                              time_text(one["begin_ms"]), time_text(one["ms"])))
                for place, one in enumerate(told["rows"])
            ]),
            empty="It had not begun.",
        ),
        DataTable(
            id="steps", caption="The start that it waited for, by step", columns=columns_of("Step", "#Took"),
            rows=rows_of([(step, (step, time_text(ms))) for step, ms in (told["cold_start"] or {}).items()]),
            empty="It waited for no container to start.",
        ),
        DataTable(
            id="attempts", caption="Attempts", columns=columns_of("Container", "Outcome", "Why", "Began", "#Took"),
            rows=rows_of([
                (f"{place}", (one["container"] or "another tenant's",
                              Cell(text=one["outcome"], tone="" if one["outcome"] == "ok" else "bad"), one["reason"],
                              "yes" if one["started"] else "no", time_text(one["ms"])))
                for place, one in enumerate(told["attempts"])
            ]),
            empty="It was sent to no container.",
        ),
        Sentence(id="trace", text=trace, tone="quiet"),
    ]  # fmt: skip


def _error(status: Mapping[str, Any]) -> list[Block]:
    """What its function raised, in the function's own words."""
    error = status.get("error")
    if not error:
        return []
    first = short_text(f"{error['code']}: {error['detail']}", LONGEST_ERROR)
    lines = (first, *(error.get("traceback") or "")[-LONGEST_ERROR:].splitlines())
    return [Heading(id="failure", text="Its failure"), TextLines(id="error", label="The error", lines=lines)]


def _receipt(told: Mapping[str, Any]) -> list[Block]:
    currency = told["currency"]
    billed = "billed to its caller" if told["cold_start_billed"] else "not billed"
    figures = (
        Figure(key="cost", label="Cost", value=money_text(told["cost"], currency)),
        Figure(key="gpu", label="GPU time", value=time_text(told["gpu_seconds"] * 1_000)),
        Figure(key="memory", label="GPU memory", value=f"{number_text(told['vram_gib_seconds'])} GiB·s"),
        Figure(key="start", label="Cold start", value=time_text(told["cold_start_ms"] or None),
               note=billed if told["cold_start_ms"] else ""),
        Figure(key="key", label="API key", value=told["key"]),
    )  # fmt: skip
    return [
        FigureList(id="receipt", figures=figures),
        DataTable(
            id="lines", caption="Receipt",
            columns=columns_of("Price", "Day", "Version", "Stage", "#Part", "#An hour of it", "#Discount",
                               "#Time or units", "#Batch", "#Cost"),
            rows=rows_of([
                (f"{place}", _receipt_line(one, currency)) for place, one in enumerate(told["lines"][:MOST_LINES])
            ]),
            empty="It was billed nothing.",
        ),
        *_relatives(told),
    ]  # fmt: skip


def _receipt_line(one: Mapping[str, Any], currency: str) -> tuple[str, ...]:
    units = one["price"] in UNIT_PRICES
    return (
        one["price"], one["day"], one["version"], one["stage"], number_text(one["ppm"] / 1e6),
        money_text(one["usd_per_hour"], currency), money_text(one["discount"]),
        count_text(one["ns"]) if units else time_text(one["ns"] / 1e6), count_text(one["batch_size"]),
        money_text(one["cost"], currency),
    )  # fmt: skip


def _relatives(told: Mapping[str, Any]) -> list[Block]:
    """Of nested calls, which have receipts of their own."""
    links = [("The call that made it", call_link(told["parent"]), False)] if told["parent"] else []
    links += [(one, call_link(one), False) for one in told["nested"][:MOST_NESTED]]
    return [LinkLine(id="nested", label="Calls around it", links=tuple(links))] if links else []


async def _draw(view: PageView) -> list[Block]:
    status, explained, receipt = await asyncio.gather(
        read_part(view, filled("/v1/calls/{id}", view.words)),
        read_part(view, filled("/v1/calls/{id}/explanation", view.words)),
        read_part(view, filled("/v1/calls/{id}/receipt", view.words)),
    )
    if not (status.answered or explained.answered or receipt.answered):
        raise ApiProblem(NOT_FOUND, "unknown_call", explained.detail or status.detail)
    return call_blocks(view.words["id"], status, explained, receipt)


CALL_PAGE = Page(
    path="/ui/calls/{id}", title="Call", question="Where did its time go?", section=Section.TENANT, draw=_draw,
    scopes=("invoke", "read"),
)  # fmt: skip
