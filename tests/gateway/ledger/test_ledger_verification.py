"""The ledger's sums are those of its lines, or the first that is not is named."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault, Purpose
from pilotlight_core.model.price_book import DatedRate, load_prices
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import correction_line, usage_day
from pilotlight_gateway.ledger.ledger_verification import verify
from pilotlight_gateway.ledger.usage_queries import call_receipt_of, receipts
from tests.example_counts import examples
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, delivered, event, histories, named

DAYS = ("2026-09-20", "2026-09-24")


def metered(number: int, t0: int, t1: int, state: LeaseState = LeaseState.IDLE, **more: Any) -> UsageEvent:
    """An interval of a node that booted at midnight."""
    return event(number, t0, t1, state, ended_at=MIDNIGHT + t1 / SECOND, **more)


def filled(ledger: Ledger) -> Ledger:
    """An hour and what corrects it, a call over midnight, two devices and a second boot."""
    ledger.close_days("2026-09-21", MIDNIGHT)
    share = CallShare("a", "rival", 3, "died", fault=Fault.PLATFORM, earlier=SECOND)
    own = CallShare("a", "rival", SECOND)
    begin, exact = 3_600 * SECOND, int(MIDNIGHT + 3_601) * SECOND
    lines = [
        metered(1, 0, begin, core_ppm=2_000_000, gib_ppm=4_000_000),
        metered(2, begin, begin + SECOND, LeaseState.BUSY, shares=(own,)),
        metered(3, begin + SECOND, begin + SECOND + 3, LeaseState.BUSY, shares=(share,), wall_ns=exact + 3),
        metered(4, 0, begin, device="d1", slice="half", ppm=500_000),
        metered(5, 0, begin, LeaseState.FREE, device="d1", slice="d1.rest", ppm=500_000, tenant=""),
        event(6, 0, SECOND, ended_at=MIDNIGHT + 50_000),
        event(7, 0, SECOND, ended_at=MIDNIGHT - 3 * 86_400),
        busy(8, 5_000 * SECOND, ("b", 4 * SECOND, "ok"), ended_at=MIDNIGHT + 86_402, device="d2"),
    ]
    ledger.fold("USAGE", 1, delivered(lines, at=MIDNIGHT + 2 * 86_400))
    return ledger


def test_discounts_leasts_and_units_add_up(ledger: Ledger) -> None:
    """Of tenants that share a busy interval each at its own; what is charged beside time is no time of a device."""
    book = ledger.book
    book.put("cpu", [DatedRate(nano_usd_per_hour=book.rate("cpu"), minimum_ms=1_000)])
    book.put("tenant.acme", [DatedRate(nano_usd_per_hour=1), DatedRate(starts_at=MIDNIGHT + 10, nano_usd_per_hour=7)])
    book.put("prompt_tokens", [DatedRate(nano_usd_per_hour=10**9)])
    book.put("images", [DatedRate(nano_usd_per_hour=10**9)])
    units = {"prompt_tokens": 6, "images": 2}
    shares = (CallShare("a", "acme", 3, "ok", units=units), CallShare("b", "rival", 4, "raised", units=units))
    lines = [
        metered(1, 0, 7, LeaseState.BUSY, shares=shares, gib_ppm=5),
        metered(2, 7, 20 * SECOND, core_ppm=4),
    ]
    sold = named({"prompt_tokens": 5, "custom": 9})
    ledger.fold("USAGE", 1, [sold, *delivered(lines, at=MIDNIGHT + 2 * 86_400)])

    assert (found := verify(ledger, *DAYS)).discrepancy is None, found
    (ours, theirs) = (receipts(ledger, *which) for which in (("acme", "a"), ("rival", "b")))
    assert {line["price"]: (line["ns"], line["discount"]) for line in ours} == {
        "cpu": (3, 10**9 - 1), "memory_gib": (3, 10**9 - 1), "minimum": (SECOND - 3, 10**9 - 1),
        "prompt_tokens": (5, 10**9 - 1),
    }  # fmt: skip
    assert {line["price"]: (line["ns"], line["discount"]) for line in theirs} == {
        "cpu": (4, 0), "memory_gib": (4, 0), "minimum": (SECOND - 4, 0)
    }  # fmt: skip
    receipt = call_receipt_of(ledger, "acme", "a")
    assert receipt is not None
    assert receipt.gpu_seconds == 3 / SECOND
    days = ledger.read(sa.select(usage_day).where(usage_day.c.state == "idle", usage_day.c.price == "cpu"))
    assert [row["discount"] for row in days] == [10**9 - 7]


def test_what_was_folded_adds_up(ledger: Ledger) -> None:
    """To the nanosecond: with corrections, hosts, calls over midnight, late lines and boots."""
    found = verify(filled(ledger), *DAYS)

    assert found.discrepancy is None, found
    assert (found.lines, found.checks["devices"]) == (8, 3)
    assert list(found.checks) == ["devices", "days", "hours", "receipts"]


@st.composite
def lives(draw: st.DrawFn) -> list[UsageEvent]:
    """Histories in which the platform ends some calls, and says what they were billed before, right or wrong."""
    events = []
    for each in draw(histories()):
        ended_by_us = draw(st.booleans())
        shares = tuple(
            replace(share, fault=Fault.PLATFORM, earlier=draw(st.integers(0, 9 * SECOND)))
            if share.ended and ended_by_us
            else share
            for share in each.shares
        )
        purpose, wall_ns = draw(st.sampled_from(Purpose)), int(each.ended_at * SECOND)
        purchase = draw(st.sampled_from(["", "spot"]))
        events.append(replace(each, shares=shares, purpose=purpose, wall_ns=wall_ns, purchase=purchase))
    return events


@examples(40)
@given(lives(), st.data())
def test_any_history_adds_up(history: list[UsageEvent], data: st.DataObject) -> None:
    """In any order and however often, over new prices and closed days: nothing is lost, nothing is billed twice."""
    ledger, end = Ledger("sqlite://", load_prices()), int(MIDNIGHT)
    deliveries = data.draw(st.permutations(history + data.draw(st.lists(st.sampled_from(history), max_size=4))))
    for number, each in enumerate(deliveries):
        match data.draw(st.integers(0, 5)):
            case 0:
                ledger.close_days(data.draw(st.sampled_from(["2026-09-21", "2026-09-22", "2026-09-23"])), MIDNIGHT)
            case 1:
                rates = [DatedRate(nano_usd_per_hour=7), DatedRate(starts_at=end + 3.0, nano_usd_per_hour=9)]
                ledger.book.put("cpu", rates)
        ledger.fold("USAGE", number, delivered([each]))

    assert verify(ledger, *DAYS).discrepancy is None
    metered = sum(each.t1 - each.t0 for each in history)
    days = ledger.read(sa.select(usage_day).where(usage_day.c.price == "cpu"))
    assert sum(row["ns"] for row in days) == metered
    given_back = ledger.read(sa.select(correction_line))
    assert sum(line["ns"] for line in given_back) <= sum(share.earlier for each in history for share in each.shares)
    ledger.close()


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ("UPDATE usage_day SET ns = ns + 1 WHERE state = 'idle' AND price = 'cpu'", "days"),
        ("DELETE FROM usage_day WHERE price = 'cpu_core'", "days"),
        ("UPDATE usage_hour SET ns = ns - 1 WHERE state = 'busy'", "hours"),
        ("UPDATE call_receipt SET ns = ns + 1 WHERE call = 'b'", "receipts"),
        ("DELETE FROM call_receipt WHERE call = 'a'", "receipts"),
        ("UPDATE lease_line SET t0 = t0 - 1 WHERE id = 'node-1.s0.2'", "devices"),
        ("UPDATE lease_line SET ppm = 500001 WHERE id = 'node-1.s0.4'", "devices"),
    ],
)
def test_what_does_not_add_up_is_named(ledger: Ledger, change: str, check: str) -> None:
    """By its check, its line and both figures."""
    filled(ledger)
    with ledger._engine.begin() as connection:
        connection.execute(sa.text(change))

    found = verify(ledger, *DAYS)

    assert found.discrepancy is not None
    assert found.discrepancy.check == check
    assert found.discrepancy.expected != found.discrepancy.found
    assert found.discrepancy.where
