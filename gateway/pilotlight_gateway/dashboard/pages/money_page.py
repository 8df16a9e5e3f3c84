"""Money: what was earned, what nobody paid for, and whether all time is accounted for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import Block, Cell, DataTable, Sentence, columns_of, rows_of
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section
from pilotlight_gateway.dashboard.page_parts.shown_values import (
    count_text,
    money_text,
    number_text,
    part_text,
    time_text,
)

SOLD_TOO_MUCH = 1.000001
"""Of the time of a device, whatever was sold of it."""


def money_blocks(costs: Mapping[str, Any], quarantine: Mapping[str, Any] | None) -> list[Block]:
    """Of thirty days."""
    currency = costs["currency"]
    wrong = [one for one in costs["devices"] if one["sold"] > SOLD_TOO_MUCH]
    held = (quarantine or {}).get("counts", ())
    text = "No device was sold for more time than it was metered for."
    if wrong:
        text = f"{wrong[0]['node']} {wrong[0]['device']} was sold for more time than it was metered for."
    return [
        Sentence(id="answer", text=text, tone="bad" if wrong else "good"),
        DataTable(
            id="tenants", caption="Who spent how much, 30 days",
            columns=columns_of("Tenant", "#Calls", "#GPU time", "#Of it without calls", "#Cost"),
            rows=rows_of([
                (one["tenant"],
                 (one["tenant"], count_text(one["calls"]), time_text(one["gpu_seconds"] * 1000),
                  money_text(one["idle_cost"], currency), money_text(one["cost"], currency)))
                for one in costs["tenants"]
            ]),
            empty="Nobody has used anything.",
        ),
        DataTable(
            id="operator",
            caption="What nobody pays for, by cause, at the prices of tenants",
            columns=columns_of("Cause", "#GPU time", "#Cost"),
            rows=rows_of([
                (one["cause"],
                 (one["cause"], time_text(one["gpu_seconds"] * 1000), money_text(one["cost"], currency)))
                for one in costs["operator"]
            ]),
        ),
        DataTable(
            id="devices", caption="What each device earned",
            columns=columns_of("Device", "Kind", "#Hours", "#Sold", "#Earned", "#All hours"),
            rows=rows_of([
                (f"{one['node']} {one['device']}",
                 (f"{one['node']} {one['device']}", one["gpu"], number_text(one["hours"]),
                  Cell(text=part_text(one["sold"]), tone="bad" if one["sold"] > SOLD_TOO_MUCH else ""),
                  money_text(one["revenue"], currency), money_text(one["list_value"], currency)))
                for one in costs["devices"]
            ]),
            note="All hours: what a device would have earned if all of its time had been sold.",
        ),
        DataTable(
            id="quarantine", caption="Usage that was not believed", columns=columns_of("Node", "Reason", "#Events"),
            rows=rows_of([
                (f"{one['node']} {one['reason']}", (one["node"], one["reason"], count_text(one["events"])))
                for one in held
            ]),
            empty="All of it was.",
        ),
    ]  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    return money_blocks(await view.read("/v1/usage/fleet"), await view.read_if_there("/v1/usage/quarantine"))


MONEY_PAGE = Page(
    path="/ui/money", title="Money", question="What was earned, and is all time accounted for?",
    section=Section.OPERATOR, draw=_draw, scopes=("operator",), live=False,
)  # fmt: skip
