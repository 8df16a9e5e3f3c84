"""What was billed before it was known whose it is, is corrected by new lines."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.price_book import DatedRate
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import correction_line, lease_line, pending_reversal, usage_day, usage_hour
from pilotlight_gateway.ledger.ledger_verification import verify
from pilotlight_gateway.ledger.usage_queries import receipts
from pilotlight_runtime.metering.meter import SliceMeter
from pilotlight_runtime.metering.metered_slice import MeteredSlice, SliceOwner
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, delivered, event, named

HOST = {"core_ppm": 2_000_000, "gib_ppm": 4_000_000}


def part(number: int, t0: int, ns: int, ended: str = "", *, at: float = MIDNIGHT, **more: Any) -> UsageEvent:
    """A second of call a, which ends at the unix second `at`."""
    share = CallShare("a", "acme", ns, ended, key="key_1", **more)
    return event(
        number, t0, t0 + ns, LeaseState.BUSY, shares=(share,), ended_at=at, wall_ns=int(at) * SECOND, **HOST
    )  # fmt: skip


def billed(ledger: Ledger, tenant: str) -> dict[str, int]:
    """Nanoseconds of the slice by day, of what a tenant pays; "": the operator."""
    query = sa.select(usage_day).where(usage_day.c.tenant == tenant, usage_day.c.price == "cpu")
    found: dict[str, int] = {}
    for row in ledger.read(query):
        found[row["day"]] = found.get(row["day"], 0) + row["ns"]
    return found


def test_what_the_platform_ended_is_given_back(ledger: Ledger) -> None:
    """On the day of the end, at the rates of then: what was billed stays as it is."""
    ledger.book.put("cpu", [DatedRate(nano_usd_per_hour=10), DatedRate(starts_at=MIDNIGHT + 1, nano_usd_per_hour=20)])
    ledger.fold("USAGE", 1, delivered([part(1, 0, SECOND, at=MIDNIGHT)]))
    ledger.fold("USAGE", 2, delivered([part(2, SECOND, SECOND, at=MIDNIGHT + 1)]))
    before = billed(ledger, "acme")

    end = part(3, 2 * SECOND, 5, "died", at=MIDNIGHT + 86_401, fault=Fault.PLATFORM, earlier=2 * SECOND)
    ledger.fold("USAGE", 3, delivered([end]))

    assert before == {"2026-09-21": SECOND, "2026-09-22": SECOND}
    assert billed(ledger, "acme") == before | {"2026-09-23": -2 * SECOND}
    assert billed(ledger, "") == {"2026-09-23": 2 * SECOND + 5}
    own = [(row["day"], row["rate"], row["ns"]) for row in receipts(ledger, "acme", "a") if row["price"] == "cpu"]
    assert sum(ns for *_, ns in own) == 0
    assert sorted(own) == [
        ("2026-09-21", 10, SECOND), ("2026-09-22", 20, SECOND),
        ("2026-09-23", 10, -SECOND), ("2026-09-23", 20, -SECOND),
    ]  # fmt: skip
    assert sum(row["cost"] for row in receipts(ledger, "acme", "a")) == 0
    lines = ledger.read(sa.select(correction_line).order_by(correction_line.c.id))
    assert [(line["corrects"], line["of_day"], line["ns"], line["why"]) for line in lines] == [
        ("node-1.s0.3", "2026-09-22", SECOND, "platform_fault"),
        ("node-1.s0.3", "2026-09-21", SECOND, "platform_fault"),
    ]
    hours = sum(row["ns"] for row in ledger.read(sa.select(usage_hour)))
    assert hours == sum(row["ns"] for row in ledger.read(sa.select(usage_day)))


@pytest.mark.parametrize(("before", "after"), [(10, 20), (20, 10)])
def test_what_was_billed_last_is_given_back_first(ledger: Ledger, before: int, after: int) -> None:
    """Of a stream that had kept its first seconds, on a day on which the price and the discount changed."""
    ledger.book.put("cpu", [
        DatedRate(nano_usd_per_hour=before), DatedRate(starts_at=MIDNIGHT + 60, nano_usd_per_hour=after)
    ])  # fmt: skip
    ledger.book.put("tenant.acme", [DatedRate(starts_at=MIDNIGHT + 120, nano_usd_per_hour=900_000_000)])
    for number, at in enumerate((30, 90, 150)):
        ledger.fold("USAGE", number, delivered([part(number, number * SECOND, SECOND, at=MIDNIGHT + at)]))

    lost = part(3, 3 * SECOND, 5, "died", at=MIDNIGHT + 180, fault=Fault.PLATFORM, earlier=SECOND + SECOND // 2)
    ledger.fold("USAGE", 3, delivered([lost]))

    paid: dict[tuple[int, int], int] = {}
    for row in receipts(ledger, "acme", "a"):
        if row["price"] == "cpu":
            terms = row["rate"], row["discount"]
            paid[terms] = paid.get(terms, 0) + row["ns"]
    assert paid == {(before, 0): SECOND, (after, 0): SECOND // 2, (after, 100_000_000): 0}


@pytest.mark.parametrize("kept_at", [1, 12, 33])
def test_a_stream_that_moved_is_billed_for_what_its_first_container_had_kept(ledger: Ledger, kept_at: int) -> None:
    """As its meter tells it, second by second; then for what the next one did. The operator pays for what was lost."""
    meter = SliceMeter(
        MeteredSlice(instance="i1", node="n1", device="d0", slice="s0", ppm=1_000_000, price="cpu"),
        at_ns=0, wall_offset_ns=int(MIDNIGHT) * SECOND,
    )  # fmt: skip
    meter.transition(
        LeaseState.IDLE, 0, SliceOwner(tenant="acme", app="shop", function="rank", version="ver_1", container="c1")
    )
    meter.call_started("a", "acme", 0)
    events = []
    for at in range(1, 37):
        if at == kept_at:
            meter.keep_work(["a"], at)
        if at % 10 == 0:
            events += meter.checkpoint(at)
    meter.call_ended("a", "died", 37, moved=True, is_lost=True)
    meter.call_started("a", "acme", 37, resumed=True)
    meter.call_ended("a", "ok", 57)
    for number, one in enumerate([*events, *meter.checkpoint(57)], 1):
        ledger.fold("USAGE", number, delivered([one]))

    assert (sum(billed(ledger, "acme").values()), sum(billed(ledger, "").values())) == (kept_at + 20, 37 - kept_at)
    own = [row for row in receipts(ledger, "acme", "a") if row["price"] == "cpu"]
    assert (sum(row["ns"] for row in own), own[-1]["outcome"]) == (kept_at + 20, "ok")
    assert sum(row["calls"] for row in ledger.read(sa.select(usage_day))) == 1
    assert verify(ledger, "2026-09-21", "2026-09-24").discrepancy is None


def test_no_more_is_given_back_than_was_billed(ledger: Ledger) -> None:
    """A node may say anything."""
    ledger.fold("USAGE", 1, delivered([part(1, 0, 7), part(2, 7, 5, "died", fault=Fault.PLATFORM, earlier=10**9)]))
    ledger.fold("USAGE", 2, delivered([part(3, 12, 5, "died", fault=Fault.PLATFORM, earlier=10**9)]))

    assert (billed(ledger, "acme"), billed(ledger, "")) == ({"2026-09-21": 0}, {"2026-09-21": 17})


def test_no_more_is_given_back_on_another_day(ledger: Ledger) -> None:
    """What was given back once is not there to be given back again, whenever that is."""
    ledger.fold("USAGE", 1, delivered([part(1, 0, 7)]))
    for number, at in ((2, MIDNIGHT + 1), (3, MIDNIGHT + 86_401)):
        end = part(number, 5 * number, 5, "died", at=at, fault=Fault.PLATFORM, earlier=10**9)
        ledger.fold("USAGE", number, delivered([end]))

    assert sum(billed(ledger, "acme").values()) == 0
    assert sum(billed(ledger, "").values()) == 7 + 5 + 5


def test_what_was_billed_is_given_back_once_to_two_ends_of_one_message(ledger: Ledger) -> None:
    """Also of one interval: a call that was started anew, and whose container was ended again."""
    ledger.fold("USAGE", 1, delivered([part(1, 0, 7)]))
    end = part(2, 7, 4, "died", fault=Fault.PLATFORM, earlier=7)
    half = msgspec.structs.replace(end.shares[0], ns=2)
    twice = msgspec.structs.replace(end, shares=(half, half))
    ledger.fold("USAGE", 2, delivered([twice]))

    assert (sum(billed(ledger, "acme").values()), sum(billed(ledger, "").values())) == (0, 7 + 4)
    assert [line["ns"] for line in ledger.read(sa.select(correction_line))] == [7]


def test_another_start_of_the_call_is_billed(ledger: Ledger) -> None:
    """As one start that ended well."""
    ledger.fold("USAGE", 1, delivered([part(1, 0, 7), part(2, 7, 5, "died", fault=Fault.PLATFORM, earlier=7)]))
    ledger.fold("USAGE", 2, delivered([part(3, 12, 4, "ok")]))

    line = next(row for row in receipts(ledger, "acme", "a") if row["price"] == "cpu")
    assert (line["ns"], line["outcome"]) == (4, "ok")
    assert sum(row["calls"] for row in ledger.read(sa.select(usage_day))) == 1


def test_what_comes_late_is_booked_on_the_first_open_day(ledger: Ledger) -> None:
    """A closed day is never changed; the line says when its time was, and from where on it is booked."""
    ledger.fold("USAGE", 1, delivered([part(1, 0, SECOND)]))
    ledger.close_days("2026-09-22", MIDNIGHT)
    ledger.close_days("2026-09-20", MIDNIGHT)
    assert ledger.open_from() == "2026-09-22"

    ledger.fold("USAGE", 2, delivered([part(2, SECOND, SECOND), part(3, 2 * SECOND, 3, "ok", at=MIDNIGHT + 1)]))

    assert billed(ledger, "acme") == {"2026-09-21": SECOND, "2026-09-22": SECOND + 3}
    lines = ledger.read(sa.select(lease_line).order_by(lease_line.c.t0))
    assert [(line["day"], line["booked_from"]) for line in lines] == [
        ("2026-09-21", ""), ("2026-09-21", "2026-09-22"), ("2026-09-22", ""),
    ]  # fmt: skip


def test_what_is_folded_after_its_correction_is_given_back_then(ledger: Ledger) -> None:
    """Once, as much as its container billed before its end; the ledger agrees with itself."""
    ledger.fold("USAGE", 1, delivered([part(1, 0, 7)]))
    end = part(4, 20, 5, "died", at=MIDNIGHT + 86_401, fault=Fault.PLATFORM, earlier=20)
    ledger.fold("USAGE", 2, delivered([end]))
    ledger.close_days("2026-09-24", MIDNIGHT)
    ledger.fold("USAGE", 3, delivered([part(2, 7, 6), part(2, 7, 6)]))
    ledger.fold("USAGE", 4, delivered([part(3, 13, 7), part(5, 25, 9, "ok")]))

    assert (sum(billed(ledger, "acme").values()), sum(billed(ledger, "").values())) == (9, 20 + 5)
    lines = ledger.read(sa.select(correction_line).order_by(correction_line.c.id))
    assert [(line["id"], line["day"], line["ns"]) for line in lines] == [
        ("node-1.s0.4.a.0", "2026-09-23", 7),
        ("node-1.s0.4.a.1", "2026-09-24", 6),
        ("node-1.s0.4.a.2", "2026-09-24", 7),
    ]
    assert ledger.read(sa.select(pending_reversal)) == []
    assert verify(ledger, "2026-09-01", "2026-10-01").discrepancy is None


def test_a_batch_that_was_split_bills_each_item_once(ledger: Ledger) -> None:
    """For its run alone, at the end and on its receipt; the batch before is given back."""

    def shares(*parts: tuple[str, int, str, Fault, int]) -> tuple[CallShare, ...]:
        return tuple(
            CallShare(call, "acme", ns, ended, 2, fault=fault, earlier=earlier)
            for call, ns, ended, fault, earlier in parts
        )

    split, ok = ("split", Fault.PLATFORM, 7), ("ok", Fault.NONE, 0)
    events = [
        event(1, 0, 14, LeaseState.BUSY, shares=shares(("a", 7, "", Fault.NONE, 0), ("b", 7, "", Fault.NONE, 0))),
        event(2, 14, 24, LeaseState.BUSY, shares=shares(("a", 5, *split), ("b", 5, *split))),
        event(3, 24, 74, LeaseState.BUSY, shares=shares(("a", 20, *ok), ("b", 30, *ok))),
    ]
    for number, each in enumerate(events):
        ledger.fold("USAGE", number + 1, delivered([each]))

    assert (sum(billed(ledger, "acme").values()), sum(billed(ledger, "").values())) == (50, 24)
    for call, ns in (("a", 20), ("b", 30)):
        own = [line for line in receipts(ledger, "acme", call) if line["price"] == "cpu"]
        assert (sum(line["ns"] for line in own), own[0]["outcome"]) == (ns, "ok")
    assert sum(row["calls"] for row in ledger.read(sa.select(usage_day))) == 2
    assert verify(ledger, "2026-09-20", "2026-09-24").discrepancy is None


def test_a_shadow_call_is_the_operators(ledger: Ledger) -> None:
    """Also what of it was metered before its end; its tenant has no line that costs."""
    begun = CallShare("a", "acme", 7, shadow=True)
    ended = CallShare("a", "acme", 5, "ok", earlier=7, units={"prompt_tokens": 4}, shadow=True)
    ledger.book.put("prompt_tokens", [DatedRate(nano_usd_per_hour=10**9)])
    ledger.fold("USAGE", 1, [named({"prompt_tokens": 9}), *delivered([
        event(1, 0, 7, LeaseState.BUSY, shares=(begun,)), event(2, 7, 12, LeaseState.BUSY, shares=(ended,)),
    ])])  # fmt: skip

    assert (billed(ledger, "acme"), sum(billed(ledger, "").values())) == ({}, 12)
    assert sum(line["cost"] for line in receipts(ledger, "acme", "a")) == 0
    assert ledger.read(sa.select(correction_line)) == ledger.read(sa.select(pending_reversal)) == []
    assert verify(ledger, "2026-09-20", "2026-09-24").discrepancy is None
