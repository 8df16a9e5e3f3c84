"""Jobs: which durable calls wait, run, or failed?"""

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
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import count_text, instant_text, plural, short_text, time_text
from pilotlight_gateway.dashboard.pages.own.calls_page import call_link, function_link

ON_A_PAGE = 50
JOB_STATES = ("", "queued", "running", "succeeded", "failed", "cancelled", "expired")
JOB_TONES = {"failed": "bad", "expired": "bad", "cancelled": "quiet", "succeeded": "good"}
LONGEST_DETAIL = 200


def jobs_blocks(listed: Mapping[str, Any], state: str = "", function: str = "", cursor: str = "") -> list[Block]:
    """Of one page of them."""
    jobs = listed["jobs"]
    states = Counter(one["state"] for one in jobs)
    parts = ", ".join(f"{count_text(states[one])} {one}" for one in JOB_STATES if states[one])
    text = f"{plural(len(jobs), 'job')} on this page: {parts}." if jobs else "There is no job here."
    if listed["next"]:
        text += " There are more."
    return [
        Sentence(id="answer", text=text, tone="warn" if states["failed"] or states["expired"] else ""),
        LinkLine(id="states", label="State", links=tuple(
            (one or "all", ui_link("/ui/jobs", state=one, function=function), one == state) for one in JOB_STATES
        )),
        PageForm(
            id="filter", action="/ui/jobs", submit="Show",
            fields=(FormField(name="function", label="Function", value=function), FormField(name="state", value=state)),
        ),
        DataTable(
            id="jobs", caption="Jobs, the last changed first",
            columns=columns_of("Job", "Function", "State", "Stored (UTC)", "Began (UTC)", "Ended (UTC)", "#Attempts",
                               "Why"),
            rows=rows_of([(one["id"], _row(one)) for one in jobs]), empty="There is none.",
        ),
        *page_links("/ui/jobs", listed["next"] or "", cursor, state=state, function=function),
    ]  # fmt: skip


def page_links(path: str, following: str, present: str, name: str = "cursor", **asked: str) -> list[Block]:
    """To the first page and to the following one of a list; nothing where all of it is on one."""
    links = [("First page", ui_link(path, **asked), False)] if present else []
    if following:
        links.append(("Next page", ui_link(path, **asked, **{name: following}), False))
    return [LinkLine(id="pages", label="Pages", links=tuple(links))] if links else []


def _row(one: Mapping[str, Any]) -> tuple[Cell | str, ...]:
    version = one["version"] or ""
    return (
        Cell(text=one["id"], href=call_link(one["id"])),
        Cell(text=version, href=function_link(version.partition("@")[0])),
        Cell(text=one["state"], tone=JOB_TONES.get(one["state"], "")), instant_text(one["created_at"]),
        instant_text(one["started_at"]), instant_text(one["ended_at"]), count_text(one["attempts"]),
        short_text(_why(one), LONGEST_DETAIL),
    )  # fmt: skip


def _why(one: Mapping[str, Any]) -> str:
    """Why it waits, or failed."""
    if one["waits_for"]:
        return str(one["waits_for"])
    if one["position"] is not None:
        soon = one["starts_in_s"]
        begins = "" if soon is None else f", begins in {time_text(soon * 1_000)}"
        return f"{count_text(one['position'])} before it{begins}"
    error = one["error"]
    return f"{error['code']}: {error['detail']}" if error else str(one["reason"] or "")


async def _draw(view: PageView) -> list[Block]:
    state, function = view.query.get("state", ""), view.query.get("function", "").strip()
    state, cursor = state if state in JOB_STATES else "", view.query.get("cursor", "")
    listed = await view.read("/v1/jobs", state=state, function=function, cursor=cursor, limit=ON_A_PAGE)
    return jobs_blocks(listed, state, function, cursor)


JOBS_PAGE = Page(
    path="/ui/jobs", title="Jobs", question="Which durable calls wait, run, or failed?", section=Section.TENANT,
    draw=_draw, scopes=("invoke", "read"),
)  # fmt: skip
