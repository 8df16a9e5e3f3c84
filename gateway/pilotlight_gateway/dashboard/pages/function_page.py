"""One function: what its calls did lately, and where their time goes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pilotlight_gateway.dashboard.drawings.step_bars import step_bars
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
    TimeChart,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, filled, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import (
    count_text,
    number_text,
    part_text,
    plural,
    time_text,
)
from pilotlight_gateway.dashboard.pages.own.calls_page import call_link
from pilotlight_gateway.dashboard.pages.own.function_details import bound_blocks, read_details

WINDOWS = {"10m": "1m", "30m": "1m", "6h": "10m", "24h": "10m"}
"""How far back, and by which steps."""
WINDOW = "30m"


def function_blocks(
    name: str, window: str, stats: Mapping[str, Any], explained: Mapping[str, Any] | None
) -> list[Block]:
    """Of what was counted in the window, and of why it has the containers that it has."""
    calls, failed, durations = stats["calls"], sum(stats["failed"].values()), stats["durations"]
    text = f"{name} was not called in this time."
    ended = durations["count"]
    if calls:
        took = "none has ended well" if failed else "none has ended yet"
        if ended:
            took = f"half of them took at most {time_text(durations['p50'])}"
            took += f", 95 of 100 at most {time_text(durations['p95'])}"
        text = f"{plural(calls, 'call')}, {number_text(stats['per_s'])} a second: {took}; {count_text(failed)} failed."
    home = stats["home"]
    figures = (
        Figure(key="rate", label="Calls a second", value=number_text(stats["per_s"])),
        Figure(key="p50", label="p50", value=time_text(durations["p50"] if ended else None)),
        Figure(key="p95", label="p95", value=time_text(durations["p95"] if ended else None)),
        Figure(key="p99", label="p99", value=time_text(durations["p99"] if ended else None)),
        Figure(key="failed", label="Failed", value=count_text(failed)),
        Figure(
            key="cold",
            label="Cold calls",
            value=count_text(stats["cold_calls"]),
            note=part_text(stats["cold_calls"] / calls if calls else None),
        ),
        Figure(key="batch", label="Batch size", value=number_text(stats["batch_size"])),
        Figure(key="gpu", label="GPU time", value=time_text(stats["gpu_ms"])),
        Figure(key="ready", label="Ready containers", value=number_text(home["ready"]), note="on average"),
        Figure(key="queued", label="Calls that wait", value=number_text(home["queued"]), note="on average"),
        Figure(key="busy", label="Containers at work", value=number_text(home["busy"]), note="on average"),
        Figure(key="good", label="Answered by the platform", value=part_text(stats["availability"])),
    )
    silent = stats["silent"]
    unheard = f"Without what {plural(len(silent), 'gateway')} counted, of which there was no answer."
    return [
        Sentence(id="answer", text=text, tone="bad" if failed * 20 > calls else ""),
        *([Sentence(id="silent", text=unheard, tone="warn")] if silent else []),
        _windows(name, window),
        FigureList(id="now", figures=figures),
        *_charts(stats["series"]),
        step_bars(
            "stages", "Where the time of calls goes, on average: the table below has the same",
            [(name, [(stage, told["mean"] * told["count"] / calls) for stage, told in stats["stages"].items()])]
            if calls else [],
        ),
        _stages(stats["stages"]),
        DataTable(
            id="failures", caption="Failed calls by code", columns=columns_of("Code", "#Calls"),
            rows=rows_of([(code, (code, count_text(count))) for code, count in stats["failed"].items()]),
            empty="No call failed.",
        ),
        _slowest(stats["slowest"]),
        *_why(explained),
    ]  # fmt: skip


def _windows(name: str, window: str) -> LinkLine:
    links = tuple((one, ui_link(f"/ui/functions/{name}", window=one), one == window) for one in WINDOWS)
    return LinkLine(id="windows", label="How far back", links=links)


def _charts(series: Sequence[Mapping[str, Any]]) -> list[Block]:
    if not series:
        return []
    at = tuple(datetime.fromisoformat(point["at"]).timestamp() for point in series)

    def of(name: str, *, per_second: bool = False) -> tuple[float | None, ...]:
        return tuple(
            point[name] / point["seconds"] if per_second and point["seconds"] else float(point[name])
            for point in series
        )

    def took(name: str) -> tuple[float | None, ...]:
        """Nothing where no call ended well."""
        return tuple(float(point[name]) if point["calls"] > point["failed"] else None for point in series)

    return [
        TimeChart(id="rates", title="Calls", unit="a second", names=("calls", "failed", "cold"), at=at,
                  values=tuple(of(name, per_second=True) for name in ("calls", "failed", "cold_calls"))),
        TimeChart(id="latency", title="Latency", unit="ms", names=("p50", "p95"), at=at,
                  values=(took("p50_ms"), took("p95_ms"))),
        TimeChart(id="load", title="Queue and containers", unit="on average", names=("waiting", "running", "ready"),
                  at=at, values=(of("queued"), of("running"), of("ready"))),
    ]  # fmt: skip


def _stages(stages: Mapping[str, Mapping[str, Any]]) -> DataTable:
    return DataTable(
        id="by-stage", caption="Time by stage",
        columns=columns_of("Stage", "#Calls", "#On average", "#p50", "#p95", "#p99", "#Longest"),
        rows=rows_of([
            (stage, (stage, count_text(told["count"]),
                     *(time_text(told[part]) for part in ("mean", "p50", "p95", "p99", "max"))))
            for stage, told in stages.items()
        ]),
        empty="No call has ended.",
    )  # fmt: skip


def _slowest(slowest: Sequence[Mapping[str, Any]]) -> DataTable:
    return DataTable(
        id="slowest", caption="Slowest calls",
        columns=columns_of("Call", "At (UTC)", "#Took", "Most of it", "Code", "#Batch", "#Attempts", "Cold"),
        rows=rows_of([
            (one["id"],
             (Cell(text=one["id"], href=call_link(one["id"])), one["at"][:19].replace("T", " "),
              time_text(one["total_ms"]), _longest(one["stages"]),
              one["code"], count_text(one["batch_size"]), count_text(one["attempts"]), "yes" if one["cold"] else "no"))
            for one in slowest
        ]),
        empty="No call has ended.",
    )  # fmt: skip


def _longest(stages: Mapping[str, float]) -> str:
    if not stages:
        return ""
    stage = max(stages, key=lambda name: stages[name])
    return f"{stage} {time_text(stages[stage])}"


def _why(explained: Mapping[str, Any] | None) -> list[Block]:
    """Why it has so many containers, in the controller's words."""
    if explained is None:
        return []
    changes = [
        (f"{one['at']} {one['rule']}",
         (one["at"][:19].replace("T", " "), count_text(one["wanted"]), count_text(one["there"]), one["rule"],
          one["because"]))
        for one in reversed(explained["changes"])
    ]  # fmt: skip
    return [
        Heading(id="why", text="Why it has the containers that it has"),
        TextLines(id="lines", label="In sentences", lines=tuple(explained["lines"])),
        DataTable(
            id="changes", caption="Decisions",
            columns=columns_of("At (UTC)", "#Wanted", "#There", "Rule", "Because"), rows=rows_of(list(changes)),
            empty="The controller has decided nothing lately.",
        ),
    ]  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    window = view.query.get("window", WINDOW)
    if window not in WINDOWS:
        window = WINDOW
    name = view.words["function"]
    stats, explained, details = await asyncio.gather(
        view.read(filled("/v1/functions/{function}/stats", view.words), window=window, step=WINDOWS[window]),
        _explained(view),
        read_details(view, name, window),
    )
    answer, *rest = function_blocks(name, window, stats, explained)
    return [answer, *bound_blocks(name, details.diagnosis), *rest, *details.blocks(name, stats["versions"])]


async def _explained(view: PageView) -> Any:
    """Why it has its containers; None: no controller says now."""
    try:
        return await view.read(filled("/v1/functions/{function}/explanation", view.words))
    except ApiProblem as problem:
        if problem.status in (401, 403):
            raise
        return None


FUNCTION_PAGE = Page(
    path="/ui/functions/{function}", title="Function", question="What do its calls do?", section=Section.TENANT,
    draw=_draw, charts=True, every_s=2.0,
)  # fmt: skip
