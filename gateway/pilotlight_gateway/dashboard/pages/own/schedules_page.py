"""Schedules: what runs by itself, and when next?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    Sentence,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import count_text, instant_text, plural, time_text
from pilotlight_gateway.dashboard.pages.own.calls_page import function_link

MOST_SCHEDULES = 250


def schedules_blocks(apps: Mapping[str, Any]) -> list[Block]:
    """Of all schedules of the deployed functions, that which ticks first first."""
    found = sorted(_schedules(apps), key=lambda one: (one[2]["next_tick"] is None, one[2]["next_tick"] or 0))
    text = f"{plural(len(found), 'schedule')}" if found else "Nothing runs by itself."
    if found and found[0][2]["next_tick"] is not None:
        text += f"; the next tick is at {instant_text(found[0][2]['next_tick'])} UTC, of {found[0][1]}."
    elif found:
        text += ", of which none ticks."
    return [
        Sentence(id="answer", text=text),
        DataTable(
            id="schedules", caption="Schedules",
            columns=columns_of("Function", "Method", "When", "Next tick (UTC)", "Its jobs"),
            rows=rows_of([
                (f"{name}.{one['schedule']['method']} {place}", _row(app, name, one))
                for place, (app, name, one) in enumerate(found[:MOST_SCHEDULES])
            ]),
            note=f"{count_text(len(found))} in all." if len(found) > MOST_SCHEDULES else "",
            empty="There is none: schedule=Cron(…) or Period(…) of a function makes one.",
        ),
    ]  # fmt: skip


def _schedules(apps: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
    for app in apps["apps"]:
        for function in app["functions"]:
            for one in function["schedules"]:
                yield app, f"{app['app']}.{function['name']}", one


def _row(app: Mapping[str, Any], name: str, one: Mapping[str, Any]) -> tuple[Cell | str, ...]:
    schedule = one["schedule"]
    when = f"{schedule['cron']} ({schedule['tz']})" if schedule["cron"] else ""
    if schedule["period_s"]:
        when = f"each {time_text(schedule['period_s'] * 1_000)}"
    tick = Cell(text=instant_text(one["next_tick"]))
    if one["next_tick"] is None:
        tick = Cell(text="it is stopped" if app["stopped"] else "none until it is deployed anew", tone="quiet")
    jobs = Cell(text="jobs", href=ui_link("/ui/jobs", function=name))
    return Cell(text=name, href=function_link(name)), schedule["method"], when, tick, jobs


async def _draw(view: PageView) -> list[Block]:
    return schedules_blocks(await view.read("/v1/apps"))


SCHEDULES_PAGE = Page(
    path="/ui/schedules", title="Schedules", question="What runs by itself, and when next?", section=Section.TENANT,
    draw=_draw, scopes=("read", "deploy"),
)  # fmt: skip
