"""Functions: how do mine do? Traffic, latency, errors and cost of a tenant's own."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import Block, Cell, DataTable, Sentence, columns_of, rows_of
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section
from pilotlight_gateway.dashboard.page_parts.shown_values import (
    count_text,
    instant_text,
    money_text,
    number_text,
    plural,
    time_text,
)

MOST_FUNCTIONS = 500
STARTING = ("binding", "loading", "warming", "provisioning")
WHY = {
    "crash_loop": "its containers cannot be loaded: see its logs", "no_capacity": "no place for a container now",
    "breaker_open": "its breaker is open", "full": "all slots are taken", "starting": "a container is starting",
}  # fmt: skip


def functions_blocks(
    apps: Mapping[str, Any],
    containers: Mapping[str, Any],
    queues: Mapping[str, Any],
    usage: Mapping[str, Any],
    stats: Mapping[str, Any] | None,
    tenant: str,
) -> list[Block]:
    """Of all deployed functions of a tenant. `stats`: of the last minutes, where the gateways have them."""
    listed = [
        (app, function) for app in apps["apps"] for function in sorted(app["functions"], key=lambda one: one["name"])
    ]
    states: dict[str, list[str]] = defaultdict(list)
    for one in containers["containers"]:
        states[f"{one['app']}.{one['function']}"].append(one["state"])
    waits = {one["function"].partition(":")[2]: one for one in queues["queues"] if one["tenant"] == tenant}
    costs: dict[str, tuple[int, Decimal]] = {}
    for line in usage["lines"]:
        name = f"{line['app']}.{line['function']}"
        calls, cost = costs.get(name, (0, Decimal(0)))
        costs[name] = calls + line["calls"], cost + Decimal(str(line["cost"]))
    told = {one["function"]: one for one in (stats or {}).get("functions", ())}
    troubled = [name for name, one in waits.items() if one["why"] in ("crash_loop", "no_capacity", "breaker_open")]
    text = f"{plural(len(listed), 'function')} in {plural(len(apps['apps']), 'app')}; nothing is wrong with them."
    if troubled:
        text = f"{troubled[0]}: {WHY[waits[troubled[0]]['why']]}."
    return [
        Sentence(id="answer", text=text if listed else "Nothing is deployed.", tone="bad" if troubled else ""),
        DataTable(
            id="functions", caption="Functions",
            columns=columns_of("Function", "Version", "#Calls a second", "#p50", "#p95", "#Failed", "#Cold",
                               "#Containers", "#Starting", "#Wait", "State", "#Calls today", "#Cost today"),
            rows=rows_of([
                (name, _row(app, function, states[name], waits.get(name), costs.get(name), told.get(name),
                            usage["total"].get("currency", "USD")))
                for app, function in listed
                for name in (f"{app['app']}.{function['name']}",)
            ]),
            empty="Nothing is deployed: 'pilotlight deploy' does that.",
            note="Times and rates are of the last ten minutes." if stats is not None else "",
        ),
        DataTable(
            id="apps", caption="Apps", columns=columns_of("App", "#Revision", "Deployed (UTC)", "State"),
            rows=rows_of([
                (app["app"], (app["app"], count_text(app["revision"]), instant_text(app["deployed_at"]),
                              "stopped" if app["stopped"] else "in service"))
                for app in apps["apps"]
            ]),
        ),
    ]  # fmt: skip


def _row(
    app: Mapping[str, Any],
    function: Mapping[str, Any],
    states: list[str],
    waits: Mapping[str, Any] | None,
    cost: tuple[int, Decimal] | None,
    told: Mapping[str, Any] | None,
    currency: str,
) -> tuple[Cell | str, ...]:
    why = waits["why"] if waits is not None else ""
    state, tone = "ready" if "ready" in states else "no container", ""
    if app["stopped"]:
        state, tone = "stopped", "quiet"
    elif why in WHY and why not in ("full", "starting"):
        state, tone = WHY[why], "bad"
    elif why:
        state, tone = WHY[why], "warn"
    rates = _rates(told)
    return (
        Cell(text=f"{app['app']}.{function['name']}", href=f"/ui/functions/{app['app']}.{function['name']}"),
        function["version"].partition("@")[2] or function["version"], *rates,
        count_text(len(states)), count_text(sum(one in STARTING for one in states)),
        count_text(waits["queued"] if waits is not None else 0), Cell(text=state, tone=tone),
        count_text(cost[0] if cost else 0), money_text(str(cost[1]) if cost else "0", currency),
    )  # fmt: skip


def _rates(told: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Calls a second, p50, p95, failures and cold calls; nothing where nobody called it."""
    if told is None:
        return ("", "", "", "", "")
    return (
        number_text(told["per_s"]), time_text(told["p50_ms"] or None), time_text(told["p95_ms"] or None),
        count_text(told["failed"]), count_text(told["cold_calls"]),
    )  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    today = datetime.fromtimestamp(view.at, UTC).date().isoformat()
    apps, containers, queues, usage, stats = await asyncio.gather(
        view.read("/v1/apps"),
        view.read("/v1/containers"),
        view.read("/v1/queues"),
        view.read("/v1/usage", **{"from": today, "group": "app,function"}),
        view.read_if_there("/v1/stats", window="10m", limit=MOST_FUNCTIONS),
    )
    return functions_blocks(apps, containers, queues, usage, stats, view.viewer.tenant)


FUNCTIONS_PAGE = Page(
    path="/ui/functions", title="Functions", question="How do mine do?", section=Section.TENANT, draw=_draw,
    every_s=2.0,
)  # fmt: skip
