"""What of the ledger is read for a report or a receipt."""

from __future__ import annotations

from decimal import Decimal

from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault, Purpose
from pilotlight_core.model.units import cost_of
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_queries import call_receipt_of, receipts, usage_report
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, delivered, event, tagged


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
