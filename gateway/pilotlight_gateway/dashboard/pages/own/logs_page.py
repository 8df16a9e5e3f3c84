"""Logs: what do my functions print? The last lines, and those that come."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    FormField,
    LinkLine,
    PageForm,
    Sentence,
    TextLines,
)
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, filled, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import plural, short_text
from pilotlight_gateway.dashboard.pages.own.calls_page import call_link, function_link

TAIL = 300
MOST_CHOICES = 300
MOST_MARKUP = 100_000
"""Bytes of HTML that a page's lines are: a page is at most 150 kB."""
LONGEST_LINE = 1_000
PLATFORM = "platform"
"""The stream of what the platform says about a container; what a function prints is in others."""
DROPPED = re.compile(r"[0-9]+ lines (\([0-9.]+ MB\) )?were dropped: ")
MARK = "── "


def logs_blocks(functions: Sequence[str], chosen: str, call_id: str, lines: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Of the lines of a function, or of an app, the newest last."""
    shown = _shown(lines, chosen)
    dropped = [one for one in lines if _is_mark(one)]
    text = f"The last {plural(len(shown), 'line')} of {chosen}" if shown else f"{chosen} has printed nothing"
    text += f" in the call {call_id}." if call_id else "."
    if not chosen:
        text = "Nothing is deployed, so nothing prints."
    about = [(f"About {chosen}", function_link(chosen), False)] if "." in chosen else []
    if call_id:
        about += [("About the call", call_link(call_id), False)]
        about += [("Of all calls", ui_link("/ui/logs", function=chosen), False)]
    return [
        Sentence(id="answer", text=text, tone="" if shown else "quiet"),
        *([Sentence(id="dropped", tone="warn", text=f"Lines are missing here: {_moment(dropped[-1]['at'])} of "
                    f"{dropped[-1]['function']}, {dropped[-1]['text']}.")] if dropped else []),
        PageForm(
            id="filter", action="/ui/logs", submit="Show",
            fields=(
                FormField(name="function", label="Of", value=chosen, options=_choices(functions, chosen)),
                FormField(name="call", label="Call", value=call_id),
            ),
        ),
        *([LinkLine(id="links", label="About these lines", links=tuple(about))] if about else []),
        TextLines(id="lines", label="Lines, the newest last (UTC)", lines=tuple(shown)),
    ]  # fmt: skip


def _choices(functions: Sequence[str], chosen: str) -> tuple[str, ...]:
    """Of which lines may be chosen; further ones are reached from their own pages."""
    listed = functions[:MOST_CHOICES]
    return tuple(listed) if chosen in listed or not chosen else (*listed, chosen)


def _shown(lines: Sequence[Mapping[str, Any]], chosen: str) -> list[str]:
    """As text; the oldest are left out where all would be too much."""
    found: list[str] = []
    room = MOST_MARKUP
    for one in reversed(lines):
        whose = "" if "." in chosen else f"{one['function']} "
        kind = MARK if _is_mark(one) else f"{one['stream']}: " if one["stream"] not in ("stdout", "") else ""
        line = f"{_moment(one['at'])} {whose}{kind}{short_text(one['text'], LONGEST_LINE)}"
        room -= len(escape(line).encode()) + len("<span></span>")
        if room < 0:
            break
        found.append(line)
    return found[::-1]


def _is_mark(one: Mapping[str, Any]) -> bool:
    return one["stream"] == PLATFORM and DROPPED.match(one["text"]) is not None


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%m-%d %H:%M:%S.%f")[:-3]


def loggable(apps: Mapping[str, Any]) -> list[str]:
    """What has lines: each app, and each of its functions."""
    found = []
    for app in apps["apps"]:
        names = sorted(f"{app['app']}.{function['name']}" for function in app["functions"])
        found += [app["app"], *names]
    return found


async def _draw(view: PageView) -> list[Block]:
    known = loggable(await view.read("/v1/apps"))
    asked, call = view.query.get("function", "").strip(), view.query.get("call", "").strip()
    chosen = asked or (known[0] if known else "")
    if not chosen:
        return logs_blocks(known, "", "", ())
    if chosen not in known:
        raise ApiProblem(404, "unknown_function", f"There is no function and no app {chosen[:100]} of yours.")
    app, _, function = chosen.partition(".")
    path = filled("/v1/apps/{app}/logs", {"app": app})
    lines = await view.follow(path, follow="true", function=function, call=call[:200], tail=TAIL)
    return logs_blocks(known, chosen, call, lines)


LOGS_PAGE = Page(
    path="/ui/logs", title="Logs", question="What do my functions print?", section=Section.TENANT, draw=_draw,
    scopes=("read", "deploy"),
)  # fmt: skip
