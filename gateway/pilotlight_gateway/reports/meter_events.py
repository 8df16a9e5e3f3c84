"""CloudEvents 1.0 for metering systems, such as OpenMeter, and through it Stripe's meters. Pure.

An event is what one function used in an hour at one rate for one key. Its id is a digest of which one it is, so that
what is sent again counts once. A meter keeps the first event of an id: so only days that are closed, whose sums never
change, are told.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from pilotlight_core.model.units import UNIT_PRICES, units_money
from pilotlight_gateway.ledger.usage_report import UsageRow, cost_units, device_seconds

GROUPS = (
    "hour", "tenant", "app", "function", "version", "state", "price", "ppm", "key", "purpose", "purchase", "region"
)  # fmt: skip
"""Of the sums that it is made of."""
TYPE = "pilotlight.usage"


class MeterEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event; `subject` is the tenant."""

    id: str
    source: str
    subject: str
    time: str
    data: dict[str, Any]
    type: str = TYPE
    specversion: str = "1.0"
    datacontenttype: str = "application/json"


def meter_events(rows: Iterable[UsageRow], ledger: str, currency: str) -> list[MeterEvent]:
    """The events of sums by `GROUPS`, in the order of time; `ledger` is the ledger's identity."""
    found = [_event(row, ledger, currency) for row in rows if row["tenant"] and (row["ns"] or row["calls"])]
    return sorted(found, key=lambda event: (event.time, event.id))


def _event(row: UsageRow, ledger: str, currency: str) -> MeterEvent:
    which = [str(row[name]) for name in (*GROUPS, "rate", *(("discount",) if row["discount"] else ()))]
    return MeterEvent(
        id=blake2b(msgspec.json.encode(which), digest_size=16).hexdigest(),
        source=f"/pilotlight/ledger/{ledger}",
        subject=row["tenant"],
        time=_instant(row["hour"]),
        data={
            **{name: row[name] for name in GROUPS if name not in ("hour", "tenant")},
            "calls": row["calls"],
            "ns": row["ns"],
            "seconds": f"{device_seconds(0 if row['price'] in UNIT_PRICES else row['ns'] * row['ppm']):.9f}",
            "cost": units_money(cost_units(row)),
            "currency": currency,
        },
    )


def _instant(hour: str) -> str:
    """The beginning of an hour, or of a day that was folded before there were hours."""
    day, _, of_day = hour.partition("T")
    return f"{day}T{of_day or '00'}:00:00Z"
