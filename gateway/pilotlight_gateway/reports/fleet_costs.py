"""What the fleet earns and what nobody pays for, for its operator. Pure, over the ledger's sums."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from pilotlight_core.model.api.billing_api import DeviceReturn, FleetCosts, OperatorCost, TenantSpend
from pilotlight_core.model.devices import BESIDE_PRICES, gpu_of_price
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import END
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.messages.usage_facts import GUESSES, Purpose
from pilotlight_core.model.price_book import NANO
from pilotlight_core.model.units import NANO_USD, NS_PER_HOUR, WHOLE_DEVICE, units_money
from pilotlight_gateway.ledger.usage_report import UsageRow, cost_units, device_seconds

GROUPS = ("tenant", "state", "price", "ppm", "purpose")
"""Of the sums that it is made of."""
TOP = 100
"""Tenants that are named."""
WITHOUT_CALLS = frozenset({LeaseState.IDLE, LeaseState.LOADING, LeaseState.DRAINING, LeaseState.PARKED})
CAUSES = {
    LeaseState.FREE: "unused",
    LeaseState.BLANK: "blank",
    LeaseState.PROVISIONING: "provisioning",
    LeaseState.BUSY: "retries",
}
"""By the state of what the operator pays itself. It pays for calls whose container the platform ended: they ran again,
or failed.
"""
GUESSED = frozenset(purpose.value for purpose in GUESSES)
DeviceSum = Mapping[str, Any]
PAID = re.compile(r"([a-z0-9-]{1,63}):([0-9]{1,6}(?:[.][0-9]{1,9})?)")
PAID_PATTERN = f"^({PAID.pattern})?(,({PAID.pattern})?)*{END}"


def fleet_costs(
    rows: Iterable[UsageRow], devices: Iterable[DeviceSum], paid: Mapping[str, int], currency: str
) -> FleetCosts:
    """The report.

    Args:
        rows: sums of all tenants by `GROUPS`.
        devices: `usage_queries.device_sums`.
        paid: nano-dollars that an hour of a device costs the operator, by price id.
        currency: of all amounts.
    """
    rows, devices = list(rows), list(devices)
    return FleetCosts(
        tenants=tuple(_tenants(row for row in rows if row["tenant"]))[:TOP],
        operator=_operator([row for row in rows if not row["tenant"]], devices),
        devices=tuple(_devices(devices, paid)),
        currency=currency,
    )


def read_paid(text: str) -> dict[str, int]:
    """What devices cost the operator, from text such as `h100:1.9,l4:0.35`, in nano-dollars an hour.

    Raises:
        BadInput: it is none.
    """
    found = {}
    for part in filter(None, text.split(",")):
        told = PAID.fullmatch(part.strip())
        if told is None:
            raise BadInput("cost: expected prices and dollars an hour, such as h100:1.9,l4:0.35.", field="cost")
        found[told[1]] = int(Decimal(told[2]) * NANO)
    return found


def _tenants(rows: Iterable[UsageRow]) -> list[TenantSpend]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in rows:
        line, cost = sums[row["tenant"]], cost_units(row)
        line[0] += cost
        line[1] += cost if row["state"] in WITHOUT_CALLS else 0
        line[2] += row["calls"]
        line[3] += row["ns"] * row["ppm"] if row["price"] not in BESIDE_PRICES else 0
    return [
        TenantSpend(
            tenant=tenant,
            cost=units_money(cost),
            idle_cost=units_money(idle),
            calls=calls,
            gpu_seconds=device_seconds(ns_ppm),
        )
        for tenant, (cost, idle, calls, ns_ppm) in sorted(sums.items(), key=lambda found: (-found[1][0], found[0]))
    ]


def _operator(rows: list[UsageRow], devices: list[DeviceSum]) -> tuple[OperatorCost, ...]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        guessed = row["purpose"] in GUESSED and row["state"] in WITHOUT_CALLS
        is_shadow = row["purpose"] == Purpose.SHADOW
        line = sums["shadow" if is_shadow else "prewarm" if guessed else CAUSES.get(row["state"], "other")]
        line[0] += cost_units(row)
        line[1] += row["ns"] * row["ppm"] if row["price"] not in BESIDE_PRICES else 0
    # Parts outside all slices are free as whole slices are: lines tell them apart, sums do not.
    for part in (row for row in devices if row["is_rest"]):
        ns_ppm = part["ns"] * part["ppm"]
        for cause, sign in (("fragmentation", 1), ("unused", -1)):
            sums[cause][0] += sign * ns_ppm * part["rate"] * NANO_USD
            sums[cause][1] += sign * ns_ppm
    return tuple(
        OperatorCost(cause=cause, cost=units_money(cost), gpu_seconds=device_seconds(ns_ppm))
        for cause, (cost, ns_ppm) in sorted(sums.items(), key=lambda found: (-found[1][0], found[0]))
    )


def _devices(rows: list[DeviceSum], paid: Mapping[str, int]) -> list[DeviceReturn]:
    sums: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in rows:
        line, ns_ppm = sums[row["node"], row["device"], row["price"]], row["ns"] * row["ppm"]
        if not row["is_given_back"]:
            line[0] += ns_ppm
            line[2] += ns_ppm * row["rate"]
        if row["is_sold"]:
            sign = -1 if row["is_given_back"] else 1
            line[1] += sign * ns_ppm
            paid_of_it = NANO_USD - (row["discount"] or 0)
            line[3] += sign * (ns_ppm * row["rate"] + row["host_cost"]) * paid_of_it
    return [
        DeviceReturn(
            node=node,
            device=device,
            gpu=gpu_of_price(price),
            hours=ns_ppm / (WHOLE_DEVICE * NS_PER_HOUR),
            sold=sold / ns_ppm if ns_ppm else 0.0,
            revenue=units_money(revenue),
            list_value=units_money(value * NANO_USD),
            cost=units_money(ns_ppm * paid[price] * NANO_USD) if price in paid else None,
        )
        for (node, device, price), (ns_ppm, sold, value, revenue) in sorted(sums.items())
    ]
