"""What of the ledger is read for a report or a receipt."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault, Purpose
from pilotlight_core.model.price_book import DatedRate
from pilotlight_core.model.units import cost_of, money, units_money
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_verification import verify
from pilotlight_gateway.ledger.usage_queries import (
    TAGS,
    call_receipt_of,
    device_sums,
    late_lines,
    receipts,
    usage_report,
    usage_sums,
)
from pilotlight_gateway.ledger.usage_report import EVERY_GROUP, cost_units, read_groups
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, delivered, event, named, tagged


def test_days_outside_are_not_in_it(ledger: Ledger) -> None:
    """The first day is, the last is not; nor is anything of another tenant."""
    late = event(2, SECOND, 2 * SECOND, ended_at=MIDNIGHT + 90_000)
    theirs = event(3, 2 * SECOND, 3 * SECOND, tenant="rival")
    ledger.fold("USAGE", 1, delivered([event(1, 0, SECOND), late, theirs]))

    found = [
        [line.ns for line in usage_report(ledger, "acme", first, until).lines]
        for first, until in (("2026-09-22", "2026-09-23"), ("2026-09-23", "2026-09-24"), ("2026-09-24", "2026-09-30"))
    ]
    assert found == [[SECOND], [SECOND], []]


def test_tags_are_those_of_the_tenants_version(ledger: Ledger) -> None:
    """Read only for who groups by them."""
    ledger.fold("USAGE", 1, delivered([event(1, 0, SECOND)]))
    ledger.fold("USAGE", 2, tagged({"ver_1": {"team": "theirs"}}, "rival"))
    days = ("2026-09-22", "2026-09-23")
    assert [line.tags for line in usage_report(ledger, "acme", *days, ("tag:team",)).lines] == [{"team": ""}]

    ledger.fold("USAGE", 3, tagged({"ver_1": {"team": "ours"}}))
    assert [line.tags for line in usage_report(ledger, "acme", *days, ("tag:team",)).lines] == [{"team": "ours"}]


def test_a_receipt_is_its_tenants(ledger: Ledger) -> None:
    """With the exact cost of each line."""
    ledger.fold("USAGE", 1, delivered([busy(1, 0, ("a", SECOND, "ok"))]))

    (line,) = receipts(ledger, "acme", "a")
    assert line["cost"] == cost_of(SECOND, line["ppm"], line["rate"])
    assert receipts(ledger, "rival", "a") == []


def test_a_receipt_adds_up_whatever_the_call_ran_on(ledger: Ledger) -> None:
    """Starts on slices of two kinds, of which one failed; in seconds of a device and of its memory."""
    share = CallShare("a", "acme", SECOND, "raised", 2, key="key_1", fault=Fault.TENANT, units={"images": 2})
    small = event(
        1, 0, SECOND, LeaseState.BUSY, shares=(share,), price="h100", ppm=250_000, memory=20 * 2**30,
        wall_ns=int(MIDNIGHT) * SECOND + SECOND, ended_at=MIDNIGHT + 1, tags={"team": "red"},
    )  # fmt: skip
    ledger.fold("USAGE", 1, delivered([small, busy(2, SECOND, ("a", 2 * SECOND, "ok"), memory=2**30)]))

    found = call_receipt_of(ledger, "acme", "a")

    assert found is not None
    first, second = found.lines if found.lines[0].price == "h100" else found.lines[::-1]
    assert (first.function, first.usd_per_hour, first.memory, first.batch_size) == (
        "shop.hello",
        "3.9492",
        20 * 2**30,
        2,
    )
    assert (first.outcome, first.fault, first.units, first.tags) == ("raised", "tenant", {"images": 2}, {"team": "red"})
    assert (second.price, second.outcome, second.memory) == ("cpu", "ok", 0)
    assert (found.gpu_seconds, found.vram_gib_seconds, found.key) == (2.25, 20.0, "key_1")
    assert Decimal(found.cost) == sum(Decimal(line.cost) for line in found.lines)
    assert call_receipt_of(ledger, "rival", "a") is None


def test_a_receipt_says_which_start_a_call_waited_for(ledger: Ledger) -> None:
    """And whether its caller pays for the load: not of a guess or of another tenant's function, and not without one."""

    def ends(call: str, number: int, tenant: str = "acme", cold_us: int = 1_500, **more: object) -> UsageEvent:
        share = CallShare(call, tenant, SECOND, "ok", cold_us=cold_us)
        at = number * SECOND
        return event(number, at, at + SECOND, LeaseState.BUSY, shares=(share,), **more)

    ledger.fold(
        "USAGE", 1,
        delivered([
            ends("own", 1), ends("guess", 2, purpose=Purpose.PREWARM, used=True), ends("theirs", 3, "rival"),
            ends("warm", 4, cold_us=0), ends("own", 5), ends("liar", 6, cold_us=2**62), ends("past", 7, cold_us=-5),
        ]),
    )  # fmt: skip

    def told(tenant: str, call: str) -> tuple[float, bool]:
        found = call_receipt_of(ledger, tenant, call)
        assert found is not None
        return found.cold_start_ms, found.cold_start_billed

    assert told("acme", "own") == (3.0, True)
    assert told("acme", "guess") == (1.5, False)
    assert told("rival", "theirs") == (1.5, False)
    assert told("acme", "warm") == told("acme", "past") == (0.0, False)
    assert told("acme", "liar") == (86_400_000.0, True)


def test_sums_are_by_day_rate_and_what_is_asked_for(ledger: Ledger) -> None:
    """Of one tenant or of all, alike from days and from hours, in both databases."""
    call = busy(1, 0, ("a", SECOND, "ok"), ("b", 2 * SECOND, "ok"), price="l4", purchase="spot", region="eu")
    free = event(2, 0, SECOND, LeaseState.FREE, tenant="", app="", function="", version="", container="")
    ledger.fold("USAGE", 1, delivered([call, free, event(3, 0, SECOND, tenant="rival")]))
    days = ("2026-09-22", "2026-09-23")

    (own,) = usage_sums(ledger, "acme", *days, ("state",))
    by_hour = list(usage_sums(ledger, None, *days, ("tenant", "hour", "purchase", "region", "gpu")))

    assert (own["day"], own["state"], own["ns"], own["calls"], own["price"]) == (
        "2026-09-22", "busy", 3 * SECOND, 2, "l4",
    )  # fmt: skip
    assert sorted((row["tenant"], row["hour"], row["purchase"], row["region"], row["ns"]) for row in by_hour) == [
        ("", "2026-09-22T12", "", "", SECOND),
        ("acme", "2026-09-22T12", "spot", "eu", 3 * SECOND),
        ("rival", "2026-09-22T12", "", "", SECOND),
    ]


@pytest.mark.parametrize("tenant", ["acme", None])
@pytest.mark.parametrize("days", [("2026-09-20", "2026-11-29"), ("2025-01-01", "2027-01-01")], ids=["parts", "at once"])
def test_a_report_says_what_sums_do_however_it_is_read(
    ledger: Ledger, tenant: str | None, days: tuple[str, str]
) -> None:  # fmt: skip
    """Row by row, in parts of a day or of a month, or at once."""
    events = []
    for number in range(40):
        share = CallShare(f"c{number}", "acme", SECOND, "ok", key=f"key_{number % 3}")
        host: dict[str, Any] = {"function": f"f{number % 2}", "core_ppm": 1_000_000, "price": "l4"}
        ended_at = MIDNIGHT + number // 4 * 25_200
        call = event(number, 0, SECOND, LeaseState.BUSY, shares=(share,), ended_at=ended_at, **host)
        tenant_of = ("acme", "rival")[number % 2]
        events += [call, event(100 + number, 0, SECOND, tenant=tenant_of, ended_at=MIDNIGHT + number * 86_400)]
    ledger.fold("USAGE", 1, [each for one in events for each in delivered([one], at=one.ended_at)])

    totals = set()
    for text in ("key,hour", "hour", "key", "day", "day,function,price", "key,hour,price,tenant", "day,hour,key,state"):
        groups = read_groups(text, all_tenants=True)
        found, sums = usage_report(ledger, tenant, *days, groups), list(usage_sums(ledger, tenant, *days, groups))
        named = [name for name in groups if name != "ppm"]
        told: dict[tuple[Any, ...], list[int]] = {}
        for row in sums:
            line = told.setdefault(tuple(row[name] for name in named), [0, 0])
            line[0] += row["calls"]
            line[1] += cost_units(row)
        assert {tuple(getattr(line, name) for name in named): (line.calls, line.cost) for line in found.lines} == {
            key: (calls, units_money(cost)) for key, (calls, cost) in told.items()
        }
        assert list(found.lines) == sorted(
            found.lines, key=lambda line: tuple(getattr(line, name) for name in EVERY_GROUP if name in named)
        )
        totals.add((found.total.calls, found.total.ns, found.total.cost))
    assert {(calls, cost) for calls, _, cost in totals} == {(40, next(iter(totals))[2])}


def test_tags_are_in_sums_as_the_ledger_has_them(ledger: Ledger) -> None:
    """For exports; a version without any has none."""
    ledger.fold("USAGE", 1, delivered([event(1, 0, SECOND), event(2, 0, SECOND, version="ver_2")]))
    ledger.fold("USAGE", 2, tagged({"ver_1": {"team": "ours"}}))

    rows = usage_sums(ledger, "acme", "2026-09-22", "2026-09-23", ("version", TAGS))
    assert sorted((row["version"], row["tags"]) for row in rows) == [("ver_1", '{"team":"ours"}'), ("ver_2", None)]


def test_devices_are_summed_by_who_had_them(ledger: Ledger) -> None:
    """Parts outside all slices apart; cores and memory count as money."""
    sold = event(1, 0, SECOND, price="l4", ppm=250_000, core_ppm=1_000_000, gib_ppm=2_000_000)
    rest = event(2, 0, SECOND, LeaseState.FREE, tenant="", slice="d0.rest", price="l4", ppm=750_000, container="")
    ledger.fold("USAGE", 1, delivered([sold, rest]))

    rows = device_sums(ledger, "2026-09-22", "2026-09-23")
    found = {bool(row["is_sold"]): row for row in rows}
    rates = {price: ledger.book.rate(price) for price in ("cpu_core", "memory_gib")}
    assert found[True]["host_cost"] == SECOND * (1_000_000 * rates["cpu_core"] + 2_000_000 * rates["memory_gib"])
    assert [(bool(found[key]["is_rest"]), found[key]["ns"], found[key]["ppm"]) for key in (True, False)] == [
        (False, SECOND, 250_000), (True, SECOND, 750_000),
    ]  # fmt: skip
    assert device_sums(ledger, "2026-09-23", "2026-09-24") == []


def test_what_is_booked_late_names_its_day(ledger: Ledger) -> None:
    """Of the tenant, in the days that it was booked in."""
    ledger.close_days("2026-10-01", MIDNIGHT + 10 * 86_400)
    ledger.fold("USAGE", 1, delivered([event(1, 0, SECOND, price="l4"), event(2, 0, SECOND, tenant="rival")]))

    (line,) = late_lines(ledger, "acme", "2026-10-01", "2026-11-01")
    assert (line.day, line.why, line.cost) == (
        "2026-09-22", "late", money(cost_of(SECOND, 1_000_000, ledger.book.rate("l4"))),
    )  # fmt: skip
    assert late_lines(ledger, "acme", "2026-09-01", "2026-10-01") == []


def test_all_that_is_booked_late_is_told(ledger: Ledger) -> None:
    """Of each of the tenants whose calls share time, with what they are charged beside it and what is given back."""
    book = ledger.book
    book.put("l4", [DatedRate(nano_usd_per_hour=book.rate("l4"), minimum_ms=5_000)])
    book.put("tenant.rival", [DatedRate(nano_usd_per_hour=700_000_000)])
    book.put("images", [DatedRate(nano_usd_per_hour=10**9)])
    begun = CallShare("c", "rival", SECOND)
    shares = (
        CallShare("a", "acme", SECOND, "ok", units={"images": 3}), CallShare("b", "rival", 2 * SECOND, "ok"), begun,
    )  # fmt: skip
    lost = CallShare("c", "rival", SECOND, "died", fault=Fault.PLATFORM, earlier=SECOND)
    host: dict[str, Any] = {"price": "l4", "core_ppm": 1_000_000}
    night = int(MIDNIGHT) * SECOND + SECOND
    events = [
        event(1, 0, 4 * SECOND, LeaseState.BUSY, shares=shares, wall_ns=night, ended_at=night / SECOND, **host),
        event(2, 4 * SECOND, 9 * SECOND, wall_ns=night + 5 * SECOND, ended_at=night / SECOND + 5, **host),
        event(3, 9 * SECOND, 10 * SECOND, LeaseState.BUSY, shares=(lost,), **host),
    ]
    ledger.close_days("2026-10-01", MIDNIGHT + 10 * 86_400)
    ledger.fold("USAGE", 1, [named({"images": 2}), *delivered(events)])

    days = ("2026-10-01", "2026-11-01")
    for tenant in ("acme", "rival"):
        lines = late_lines(ledger, tenant, *days)
        total = sum(cost_units(row) for row in usage_sums(ledger, tenant, *days, ("tenant",)))
        assert sum(Decimal(line.cost) for line in lines) == Decimal(units_money(total)) > 0
    assert {(line.day, line.why) for line in late_lines(ledger, "acme", *days)} == {
        ("2026-09-21", "late"), ("2026-09-22", "late"),
    }  # fmt: skip
    assert [(line.why, Decimal(line.cost) < 0) for line in late_lines(ledger, "rival", *days)] == [
        ("late", False), ("late", False), ("platform_fault", True),
    ]  # fmt: skip
    assert verify(ledger, "2026-09-01", "2026-11-01").discrepancy is None


def test_a_receipt_has_a_line_of_each_hook(ledger: Ledger) -> None:
    """Of the function that was called, with the stage; what they cost adds up."""
    ran = [("Words~pre", "preprocess"), ("Words", ""), ("Words~post", "postprocess")]
    parts = [
        busy(number, number * SECOND, ("a", SECOND, "ok"), function=name, version=f"v{number}")
        for number, (name, _) in enumerate(ran)
    ]
    ledger.fold("USAGE", 1, delivered(parts))
    found = call_receipt_of(ledger, "acme", "a")

    assert found is not None
    assert {line.function for line in found.lines} == {"shop.Words"}
    assert sorted((line.version, line.stage) for line in found.lines) == [
        ("v0", "preprocess"), ("v1", ""), ("v2", "postprocess"),
    ]  # fmt: skip
    assert Decimal(found.cost) == sum(Decimal(line.cost) for line in found.lines)
