"""CloudEvents of the seeded month."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import msgspec

from pilotlight_core.model.units import COST_UNITS
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_queries import usage_sums
from pilotlight_gateway.ledger.usage_report import cost_units
from pilotlight_gateway.reports.meter_events import GROUPS, meter_events
from tests.gateway.reports.seeded_month import FIRST, UNTIL


def test_events_have_what_cloudevents_demand(month: Ledger) -> None:
    """And ids that are the same whenever they are asked for, and of one event each."""
    rows = list(usage_sums(month, None, FIRST, UNTIL, GROUPS))
    events = meter_events(rows, month.identity(), "USD")
    again = meter_events(reversed(rows), month.identity(), "USD")
    assert events == again
    assert len({event.id for event in events}) == len(events) > 1_000
    told = msgspec.json.decode(msgspec.json.encode(events[-1]))
    assert {"id", "source", "specversion", "type", "subject", "time", "data", "datacontenttype"} == told.keys()
    assert (told["specversion"], told["type"]) == ("1.0", "pilotlight.usage")
    assert told["time"].endswith(":00:00Z")
    assert len(told["id"]) <= 100


def test_they_are_all_that_tenants_used(month: Ledger) -> None:
    """To the last nanosecond; what nobody pays for is no event."""
    rows = list(usage_sums(month, None, FIRST, UNTIL, GROUPS))
    events = meter_events(rows, month.identity(), "USD")
    assert {event.subject for event in events} == {"acme", "birch", "cedar"}
    assert sum(event.data["ns"] for event in events) == sum(row["ns"] for row in rows if row["tenant"])
    assert sum(event.data["calls"] for event in events) == sum(row["calls"] for row in rows)
    cost = Fraction(sum(cost_units(row) for row in rows if row["tenant"]), COST_UNITS)
    apart = abs(sum(Decimal(event.data["cost"]) for event in events) - Decimal(float(cost)))
    assert apart < Decimal("1e-8")


def test_a_day_of_before_hours_begins_at_midnight() -> None:
    """Older releases folded no hours."""
    row = dict.fromkeys(GROUPS, "") | {
        "hour": "2026-09-01",
        "tenant": "acme",
        "price": "l4",
        "ppm": 1,
        "rate": 1,
        "discount": 0,
        "ns": 1,
        "calls": 0,
    }
    (event,) = meter_events([row], "here", "USD")
    assert event.time == "2026-09-01T00:00:00Z"
