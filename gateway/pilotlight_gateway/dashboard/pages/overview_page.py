"""Overview: is anything wrong?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    Figure,
    FigureList,
    Sentence,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import count_text, number_text, part_text, plural, time_text

NEVER_OPEN = "closed"
ROUTES = ("/v1/fleet", "/v1/nodes", "/v1/queues", "/v1/slowdowns", "/v1/breakers", "/v1/scaling/gateways")
PARTS = ("devices", "used", "free", "stranded", "out")


def overview_blocks(
    fleet: Mapping[str, Any],
    nodes: Mapping[str, Any],
    queues: Mapping[str, Any],
    slowdowns: Mapping[str, Any],
    breakers: Mapping[str, Any],
    scaling: Mapping[str, Any],
) -> list[Block]:
    """Of what the six routes say."""
    troubles = troubles_of(nodes, queues, slowdowns, breakers)
    text, tone = ("Nothing is wrong.", "good") if not troubles else (f"{troubles[0][1]}", "bad")
    if len(troubles) > 1:
        text = f"{text} And {plural(len(troubles) - 1, 'thing')} more, below."
    total = scaling["sum"]
    listed = nodes["nodes"]
    up = sum(one["status"] == "up" for one in listed)
    figures = (
        Figure(key="nodes", label="Nodes that are up", value=f"{count_text(up)} of {count_text(len(listed))}"),
        Figure(key="gateways", label="Gateways", value=count_text(total["gateways"])),
        Figure(key="rate", label="Requests a second", value=number_text(total["requests_per_s"])),
        Figure(key="calls", label="Calls inside", value=count_text(total["calls"])),
        Figure(key="queued", label="Calls that wait", value=count_text(queues["queued"])),
        Figure(key="lag", label="Latest event loop", value=time_text(scaling["most"]["loop_lag_s"] * 1000)),
    )
    return [
        Sentence(id="answer", text=text, tone=tone),
        FigureList(id="now", figures=figures),
        DataTable(
            id="troubles", caption="What is wrong", columns=columns_of("Where", "What", "Since or how much"),
            rows=rows_of([
                (key, (Cell(text=where, href=href), what, much)) for key, what, where, href, much in troubles
            ]),
            empty="Nothing is.",
        ),
        DataTable(
            id="totals", caption="Capacity by kind of device",
            columns=columns_of("Kind", "#Devices", "#Used", "#Free", "#Stranded", "#Out"),
            rows=rows_of([
                (kind, (Cell(text=kind, href=ui_link("/ui/fleet", type=kind)),
                        *(number_text(parts.get(name, 0.0)) for name in PARTS)))
                for kind, parts in fleet["totals"].items()
            ]),
            empty="No node has told of a device.",
            note="In whole devices. Stranded: free, and of no use to any instance. Out: draining, or withdrawn.",
        ),
        DataTable(
            id="gateways", caption="Gateways",
            columns=columns_of("Gateway", "#Requests a second", "#Calls inside", "#Loop lag", "#Bodies held"),
            rows=rows_of([
                (one["gateway"], (one["name"], number_text(one["requests_per_s"]), count_text(one["calls"]),
                                  time_text(one["loop_lag_s"] * 1000),
                                  part_text(one["body_bytes"] / max(1, one["body_bytes_limit"]))))
                for one in scaling["gateways"]
            ]),
        ),
    ]  # fmt: skip


OverviewTrouble = tuple[str, str, str, str, str]
"""A key, a sentence, where it is, its page, and how much or since when."""


def troubles_of(
    nodes: Mapping[str, Any], queues: Mapping[str, Any], slowdowns: Mapping[str, Any], breakers: Mapping[str, Any]
) -> list[OverviewTrouble]:
    """What is wrong, the worst first."""
    found: list[OverviewTrouble] = [
        (f"loop-{one['version']}", f"Containers of {one['version']} cannot be loaded.", one["function"], "/ui/queues",
         time_text(one["oldest_ms"]))
        for one in queues["queues"]
        if one["why"] == "crash_loop"
    ]  # fmt: skip
    found += [
        (f"node-{one['node']}", f"The node {one['node']} is {one['status']}.", one["node"], "/ui/nodes", "")
        for one in nodes["nodes"]
        if one["status"] == "silent"
    ]
    found += [
        (f"room-{one['version']}", f"{one['version']} has calls and no place for a container.", one["function"],
         "/ui/queues", time_text(one["oldest_ms"]))
        for one in queues["queues"]
        if one["why"] == "no_capacity"
    ]  # fmt: skip
    found += [
        (f"breaker-{one['version']}-{one['of']}-{one['container']}-{one['caller']}",
         f"A breaker of {one['version']} is {one['state'].replace('_', ' ')}.", one["function"] or one["version"],
         "/ui/breakers", plural(one["failures"], "failure"))
        for one in breakers["breakers"]
        if one["state"] != NEVER_OPEN
    ]  # fmt: skip
    found += [
        (f"slow-{one['tenant']}-{one['version']}-{one['priority']}",
         f"Calls of {one['tenant']} take {number_text(one['slowdown'])} times as long as alone.", one["function"],
         "/ui/slowdowns", one["neighbour"])
        for one in slowdowns["slowdowns"]
    ]  # fmt: skip
    return found


async def _draw(view: PageView) -> list[Block]:
    answers = await asyncio.gather(*(view.read(path) for path in ROUTES))
    return overview_blocks(*answers)


OVERVIEW_PAGE = Page(
    path="/ui/overview", title="Overview", question="Is anything wrong?", section=Section.OPERATOR, draw=_draw,
    scopes=("operator",), every_s=2.0,
)  # fmt: skip
