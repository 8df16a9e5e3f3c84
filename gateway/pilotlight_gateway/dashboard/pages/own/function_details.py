"""Beside a function's numbers: what bounds it, its versions, its containers, and where else it is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart, read_part, unanswered
from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    Heading,
    LinkLine,
    Sentence,
    TextLines,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.page import PageView, filled, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import (
    count_text,
    instant_text,
    part_text,
    short_text,
    time_text,
)
from pilotlight_gateway.dashboard.pages.own.rollouts_page import rollout_link

MOST_CONTAINERS = 100
LONGEST_MESSAGE = 200
MOST_VERSIONS = 20
QUIET = ("nothing", "few", "unknown")
"""Names of a diagnosis that names no cause."""
DIAGNOSED = {"10m": "10m", "30m": "30m"}
"""Diagnoses are of an hour at most."""


def bound_blocks(name: str, diagnosis: AnsweredPart) -> list[Block]:
    """Its links, and the sentence of what bounds it, which keeps them apart from those of its windows."""
    links = (
        ("Calls", ui_link("/ui/calls", function=name), False), ("Jobs", ui_link("/ui/jobs", function=name), False),
        ("Logs", ui_link("/ui/logs", function=name), False),
        ("Events", ui_link("/ui/events-log", function=name), False),
        ("Rollout", rollout_link(name.partition(".")[0]), False),
        ("Usage", "/ui/usage", False), ("Schedules", "/ui/schedules", False),
    )  # fmt: skip
    more = LinkLine(id="links", label="More about this function", links=links)
    found: list[Block] = [more, *unanswered("bound", "What bounds it", diagnosis)]
    if diagnosis.answered:
        told = diagnosis.value
        tone = "quiet" if told["name"] in QUIET else "bad" if told["trouble"] else "warn"
        found.append(Sentence(id="bound", text=told["sentence"], tone=tone))
    return found


def cause_blocks(diagnosis: AnsweredPart) -> list[Block]:
    """The evidence and the cures, where a cause is named."""
    if not diagnosis.answered or diagnosis.value["name"] in QUIET:
        return []
    told = diagnosis.value
    cures = [
        (f"{place}", (one["what"], one["cost"], one["command"],
                      part_text(told["gain"] if one["gain"] is None else one["gain"])))
        for place, one in enumerate(told["cures"])
    ]  # fmt: skip
    return [
        Heading(id="cause", text="What bounds it"),
        TextLines(id="evidence", label="The evidence", lines=tuple(told["evidence"])),
        DataTable(
            id="cures", caption="What to do about it, the cheapest first",
            columns=columns_of("What", "It costs", "Command", "#Removes"), rows=rows_of(list(cures)),
            empty="Nothing is known that would help.",
        ),
    ]  # fmt: skip


def version_blocks(function: str, history: AnsweredPart, counted: Sequence[Mapping[str, Any]] = ()) -> list[Block]:
    """Its versions, by the deploys that brought them, the newest first. `counted`: what was, of each in the window."""
    calls = {one["version"]: one for one in counted}
    found: list[tuple[str, tuple[Cell | str, ...]]] = []
    before = ""
    for one in history.value["history"] if history.answered else ():
        version, known = one["versions"].get(function, ""), calls.get(one["functions"].get(function, ""))
        if version == before:
            continue
        before = version
        row = (
            version or "removed", count_text(one["revision"]), instant_text(one["at"]), one["by"],
            short_text(one["message"], LONGEST_MESSAGE), count_text(known["calls"] if known else 0),
            count_text(known["failed"] if known else 0),
            time_text(known["durations"]["p95"] if known and known["durations"]["count"] else None),
        )  # fmt: skip
        found.append((str(one["revision"]), row))
    return [
        *unanswered("no-versions", "Its versions", history),
        *([DataTable(
            id="versions", caption="Versions, the newest first",
            columns=columns_of("Version", "#Revision", "Deployed (UTC)", "By key", "Message", "#Calls", "#Failed",
                               "#p95"),
            rows=rows_of(list(reversed(found))[:MOST_VERSIONS]),
        )] if history.answered else []),
    ]  # fmt: skip


def container_blocks(app: str, function: str, containers: AnsweredPart) -> list[Block]:
    """Its containers now."""
    if not containers.answered:
        return [*unanswered("no-containers", "Its containers", containers)]
    mine = [one for one in containers.value["containers"] if (one["app"], one["function"]) == (app, function)]
    return [
        DataTable(
            id="containers", caption="Containers",
            columns=columns_of("Container", "State", "Slice", "#Running", "#Slots", "#Calls", "#Age", "#Start took",
                               "Breaker", "Why"),
            rows=rows_of([(one["id"], _container(one)) for one in mine[:MOST_CONTAINERS]]),
            empty="It has none: the next call starts one.",
            note=f"{count_text(len(mine))} in all." if len(mine) > MOST_CONTAINERS else "",
        )
    ]  # fmt: skip


def _container(one: Mapping[str, Any]) -> tuple[Cell | str, ...]:
    start: Sequence[float] = tuple((one.get("timeline") or {}).values())
    breaker = one.get("breaker", "")
    return (
        one["id"], Cell(text=one["state"], tone="" if one["state"] == "ready" else "warn"),
        one["slice"].rpartition(":")[2], count_text(one["running"]), count_text(one["slots"]),
        count_text(one.get("calls")), time_text(one["age_s"] * 1_000),
        time_text(sum(start) if start else None), Cell(text=breaker, tone="bad" if breaker == "open" else ""),
        one.get("reason", ""),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FunctionDetails:
    """What is told of a function beside its numbers."""

    diagnosis: AnsweredPart
    history: AnsweredPart
    containers: AnsweredPart

    def blocks(self, name: str, counted: Sequence[Mapping[str, Any]]) -> list[Block]:
        """What stands below its numbers, with what was counted of each version."""
        app, _, function = name.partition("@")[0].partition(".")
        return [
            *cause_blocks(self.diagnosis),
            *version_blocks(function, self.history, counted),
            *container_blocks(app, function, self.containers),
        ]


async def read_details(view: PageView, name: str, window: str) -> FunctionDetails:
    """What the API says of them; what it does not say is a part that says why."""
    app = name.partition(".")[0]
    diagnosis, history, containers = await asyncio.gather(
        read_part(view, filled("/v1/functions/{function}/diagnosis", {"function": name}),
                  window=DIAGNOSED.get(window, "1h")),
        read_part(view, filled("/v1/apps/{app}/history", {"app": app})),
        read_part(view, "/v1/containers"),
    )  # fmt: skip
    return FunctionDetails(diagnosis=diagnosis, history=history, containers=containers)
