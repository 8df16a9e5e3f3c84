"""Usage and cost: what did mine cost, what will the month cost, and what is left to spend?"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart, read_part, unanswered
from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    Figure,
    FigureList,
    FormField,
    Heading,
    PageForm,
    Sentence,
    TableRow,
    TimeChart,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, filled, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import (
    count_text,
    money_text,
    part_text,
    plural,
    time_text,
)
from pilotlight_gateway.dashboard.pages.own.calls_page import function_link

DAYS = 30
MOST_ROWS = 200
"""Of a table; its total is of all of them."""
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
UsageJson = Mapping[str, Any]


def spending_blocks(
    days: tuple[str, str],
    by_day: UsageJson,
    by_function: UsageJson,
    forecast: AnsweredPart,
    budgets: AnsweredPart,
    credit: AnsweredPart,
) -> list[Block]:
    """Of what was used in these days, and of what may be spent."""
    first, until = days
    total = by_day["total"]
    currency = total["currency"]
    text = f"{money_text(total['cost'], currency)} for {plural(total['calls'], 'call')} from {first} until {until}."
    if forecast.answered:
        told = forecast.value
        text += f" {told['month']} will have cost {money_text(told['expected'], told['currency'])}"
        text += f", of which {money_text(told['so_far'], told['currency'])} are spent."
    exhausted = budgets.answered and any(one["is_exhausted"] for one in budgets.value["budgets"])
    return [
        Sentence(id="answer", text=text, tone="bad" if exhausted else ""),
        PageForm(
            id="range", action="/ui/usage", submit="Show",
            fields=(FormField(name="from", label="From", value=first, kind="date"),
                    FormField(name="to", label="Until before", value=until, kind="date")),
        ),
        *unanswered("no-forecast", "The forecast", forecast),
        *(_forecast(forecast.value) if forecast.answered else []),
        *_chart(by_day["lines"], currency),
        _report("by-function", "Cost by function", ("Function",), by_function, [
            (Cell(text=name, href=function_link(name)),)
            for one in by_function["lines"] for name in (_function_of(one),)
        ]),
        _report("by-day", "Cost by day", ("Day (UTC)",), by_day, [
            (Cell(text=one["day"], href=ui_link("/ui/usage", **{"from": one["day"], "to": _after(one["day"])})),)
            for one in by_day["lines"]
        ]),
        Heading(id="left", text="What is left to spend"),
        *unanswered("no-budgets", "Budgets", budgets),
        *([_budgets(budgets.value)] if budgets.answered else []),
        *unanswered("no-credits", "Credit", credit),
        *(_credits(credit.value) if credit.answered else []),
    ]  # fmt: skip


def _function_of(line: UsageJson) -> str:
    return f"{line['app']}.{line['function']}" if line["function"] else line["app"]


def _after(day: str) -> str:
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()


def _forecast(told: UsageJson) -> list[Block]:
    currency = told["currency"]
    span = "" if told["low"] is None else f"{money_text(told['low'])} to {money_text(told['high'], currency)}"
    error = "" if told["error"] is None else f"off by {part_text(told['error'])} so far"
    figures = (
        Figure(key="so-far", label=f"Spent in {told['month']}", value=money_text(told["so_far"], currency)),
        Figure(key="expected", label="At its end", value=money_text(told["expected"], currency), note=error),
        Figure(key="span", label="Eight of ten times", value=span or "not known", note="" if span else "too few days"),
        Figure(key="days", label="Days that it knows", value=count_text(told["days"]), note=told["method"]),
    )
    return [FigureList(id="forecast", figures=figures)]


def _chart(lines: Sequence[UsageJson], currency: str) -> list[Block]:
    if len(lines) < 2:
        return []
    at = tuple(datetime.fromisoformat(one["day"]).replace(tzinfo=UTC).timestamp() for one in lines)
    costs = tuple(float(one["cost"]) for one in lines)
    return [TimeChart(id="days", title="Cost by day", unit=currency, names=("cost",), at=at, values=(costs,))]


def _report(
    name: str, caption: str, heads: Sequence[str], report: UsageJson, keys: Sequence[tuple[Cell, ...]]
) -> DataTable:
    """Lines of a report, and below them its total, which is the route's own."""
    lines, total, currency = report["lines"][:MOST_ROWS], report["total"], report["total"]["currency"]
    rows: list[tuple[str, tuple[Cell | str, ...]]] = [
        (" ".join(cell.text for cell in key), (*key, *_amounts(one, currency)))
        for key, one in zip(keys, lines, strict=False)
    ]
    left = len(report["lines"]) - len(lines)
    note = f"{left} more lines are in the total and not shown: ask for fewer days." if left else ""
    summed = rows_of([("total", ("All of them", *("" for _ in heads[1:]), *_amounts(total, currency)))])
    found: tuple[TableRow, ...] = rows_of(rows)
    return DataTable(
        id=name, caption=caption, columns=columns_of(*heads, "#Calls", "#GPU time", "#Cost"), note=note,
        rows=(*found, *summed) if found else (), empty="Nothing was used in these days.",
    )  # fmt: skip


def _amounts(one: UsageJson, currency: str) -> tuple[str, str, str]:
    return count_text(one["calls"]), time_text(one["gpu_seconds"] * 1_000), money_text(one["cost"], currency)


def _budgets(told: UsageJson) -> DataTable:
    currency = told["currency"]
    return DataTable(
        id="budgets", caption="Budgets",
        columns=columns_of("Budget", "Of", "Kind", "#Amount", "#Spent", "#Left", "State", "Begins anew (UTC)"),
        rows=rows_of([
            (one["id"],
             (one["id"], one["function"] or (f"key {one['key']}" if one["key"] else "all calls"),
              f"{one['mode']}, {one['period']}{', prepaid' if one['prepaid'] else ''}",
              money_text(one["usd"], currency), money_text(one["spent_usd"], currency),
              money_text(one["left_usd"], currency), _state(one), (one["resets_at"] or "never")[:16].replace("T", " ")))
            for one in told["budgets"]
        ]),
        empty="There is none: all may be spent that limits and credit allow.",
    )  # fmt: skip


def _state(budget: UsageJson) -> Cell:
    if budget["is_exhausted"]:
        return Cell(text="used up: calls are refused" if budget["mode"] == "hard" else "used up", tone="bad")
    reached = max(budget["reached"], default=None)
    return Cell(text="open", tone="good") if reached is None else Cell(text=f"{reached} % are reached", tone="warn")


def _credits(told: UsageJson) -> list[Block]:
    currency = told["currency"]
    if not told["grants"] and not told["history"]:
        return [Sentence(id="credit", text="No credit was given: what is used is billed.", tone="quiet")]
    figures = (
        Figure(key="balance", label="Credit left", value=money_text(told["balance_usd"], currency)),
        Figure(key="owed", label="Owed", value=money_text(told["owed_usd"], currency)),
    )
    return [
        FigureList(id="credit", figures=figures),
        DataTable(
            id="grants", caption="Credit",
            columns=columns_of("Grant", "#Given", "#Left", "From", "Until before", "Note"),
            rows=rows_of([
                (one["id"], (one["id"], money_text(one["usd"], currency), money_text(one["left_usd"], currency),
                             one["begins"], one["ends"] or "for ever", one["note"]))
                for one in told["grants"]
            ]),
        ),
    ]  # fmt: skip


def days_of(query: Mapping[str, str], at: float) -> tuple[str, str]:
    """The first day that is asked for, and the first that is not in it; by default the last thirty."""
    until = query.get("to", "")
    if not DAY.fullmatch(until):
        until = (datetime.fromtimestamp(at, UTC).date() + timedelta(days=1)).isoformat()
    first = query.get("from", "")
    if DAY.fullmatch(first):
        return first, until
    try:
        return (date.fromisoformat(until) - timedelta(days=DAYS)).isoformat(), until
    except (ValueError, OverflowError):
        return until, until  # the API says what is wrong with it


async def _draw(view: PageView) -> list[Block]:
    first, until = days_of(view.query, view.at)
    days = {"from": first, "to": until}
    own = {"tenant": view.viewer.tenant}
    by_day, by_function, forecast, budgets, credit = await asyncio.gather(
        view.read("/v1/usage", **days, group="day"),
        view.read("/v1/usage", **days, group="app,function"),
        read_part(view, "/v1/usage/forecast"),
        read_part(view, filled("/v1/tenants/{tenant}/budgets", own)),
        read_part(view, filled("/v1/tenants/{tenant}/credits", own)),
    )
    return spending_blocks((first, until), by_day, by_function, forecast, budgets, credit)


SPENDING_PAGE = Page(
    path="/ui/usage", title="Usage", question="What did mine cost, and what is left to spend?",
    section=Section.TENANT, draw=_draw, charts=True, live=False,
)  # fmt: skip
