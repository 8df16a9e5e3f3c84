"""Tenants: who takes what, and who is hurt?"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import Block, Cell, DataTable, Sentence, columns_of, rows_of
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import count_text, money_text, number_text, plural

READY = ("ready",)


def tenants_blocks(
    tenants: Mapping[str, Any],
    containers: Mapping[str, Any],
    queues: Mapping[str, Any],
    slowdowns: Mapping[str, Any],
    costs: Mapping[str, Any],
) -> list[Block]:
    """Of each tenant what it has, what waits, and what it spent these thirty days."""
    running, ready, waiting = Counter[str](), Counter[str](), Counter[str]()
    for one in containers["containers"]:
        running[one["tenant"]] += 1
        ready[one["tenant"]] += one["state"] in READY
    for one in queues["queues"]:
        for flow in one["flows"]:
            waiting[flow["tenant"]] += flow["queued"]
    slow: dict[str, float] = {}
    for one in slowdowns["slowdowns"]:
        slow[one["tenant"]] = max(slow.get(one["tenant"], 0.0), one["slowdown"])
    spent = {one["tenant"]: one for one in costs["tenants"]}
    listed = sorted(tenants["tenants"], key=lambda one: (-running[one["name"]], one["name"]))
    hurt = f"{len(slow) or 'none'} slowed down by others, {len(waiting) or 'none'} waiting"
    text = f"{plural(len(listed), 'tenant')}; {hurt}."
    return [
        Sentence(id="answer", text=text, tone="bad" if slow else ""),
        DataTable(
            id="tenants", caption="Tenants",
            columns=columns_of("Tenant", "Tier", "#Weight", "#Containers", "#Ready", "#Calls that wait", "#Slowdown",
                               "#Calls, 30 days", "#Cost, 30 days"),
            rows=rows_of([
                (one["name"],
                 (Cell(text=one["name"], href=ui_link("/ui/fleet", tenant=one["name"]),
                       tone="quiet" if one["disabled"] else ""),
                  f"{one['tier']}{', disabled' if one['disabled'] else ''}", number_text(one["weight"]),
                  count_text(running[one["name"]]), count_text(ready[one["name"]]), count_text(waiting[one["name"]]),
                  Cell(text=number_text(slow.get(one["name"])), tone="bad" if one["name"] in slow else ""),
                  count_text(spent.get(one["name"], {}).get("calls", 0)),
                  money_text(spent.get(one["name"], {}).get("cost", "0"), costs["currency"])))
                for one in listed
            ]),
            empty="There is no tenant.", note=f"{plural(len(listed), 'tenant')}.",
        ),
    ]  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    tenants, containers, queues, slowdowns, costs = await asyncio.gather(
        view.read("/v1/tenants"), view.read("/v1/containers", all="true"), view.read("/v1/queues"),
        view.read("/v1/slowdowns"), view.read("/v1/usage/fleet"),
    )  # fmt: skip
    return tenants_blocks(tenants, containers, queues, slowdowns, costs)


TENANTS_PAGE = Page(
    path="/ui/tenants", title="Tenants", question="Who takes what, and who is hurt?", section=Section.OPERATOR,
    draw=_draw, scopes=("operator",), every_s=5.0,
)  # fmt: skip
