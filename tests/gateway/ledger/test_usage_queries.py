"""What of the ledger is read for a report or a receipt."""

from __future__ import annotations

from pilotlight_core.model.units import cost_of
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_queries import receipts, usage_report
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
