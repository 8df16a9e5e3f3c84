"""What the pages show of November 2026 is what the ledger says of it, to the last digit, from either database."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_verification import verify
from pilotlight_gateway.ledger.usage_queries import usage_report
from tests.gateway.reports.documented_month import FILES, FOLDER
from tests.gateway.reports.seeded_month import FIRST, UNTIL, fold_month


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_what_is_made_now(month: Ledger, name: str) -> None:
    """`python -m tests.gateway.reports.documented_month` writes them anew."""
    assert FILES[name](month) == (FOLDER / name).read_text()


def test_postgresql_says_the_same(new_database: Callable[[], str]) -> None:
    """Every file, byte for byte."""
    ledger = fold_month(new_database())
    try:
        assert {name: make(ledger) for name, make in FILES.items()} == {
            name: (FOLDER / name).read_text() for name in FILES
        }
        assert verify(ledger, FIRST, UNTIL).discrepancy is None
    finally:
        ledger.close()


def test_the_month_adds_up(month: Ledger) -> None:
    """Lines, days, hours and receipts."""
    found = verify(month, FIRST, UNTIL)
    assert found.discrepancy is None, found
    assert found.lines > 3_000


def test_invoice_and_focus_are_the_report(month: Ledger) -> None:
    """Read from the files as others read them."""
    invoice = json.loads((FOLDER / "invoice-acme-2026-11.json").read_text())
    assert invoice["total"] == usage_report(month, "acme", FIRST, UNTIL, ()).total.cost
    with Path(FOLDER / "focus-cedar-2026-11.csv").open(newline="") as file:
        billed = sum(Decimal(row["BilledCost"]) for row in csv.DictReader(file))
    total = Decimal(usage_report(month, "cedar", FIRST, UNTIL, ()).total.cost)
    assert abs(billed - total) <= Decimal("1e-12")
