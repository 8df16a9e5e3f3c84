"""Usage as Parquet: read by pyarrow where it is, refused by name where it is not."""

from __future__ import annotations

import io
import sys
from decimal import Decimal

import pytest
from pyarrow import parquet

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_queries import usage_report
from pilotlight_gateway.reports.usage_parquet import as_parquet
from tests.gateway.reports.seeded_month import FIRST, UNTIL

GROUPS = ("day", "function", "gpu", "tag:team")


def test_it_has_every_line_and_every_digit(month: Ledger) -> None:
    """Money as decimals, time as integers."""
    report = usage_report(month, "acme", FIRST, UNTIL, GROUPS)
    table = parquet.read_table(io.BytesIO(as_parquet(report, GROUPS)))
    assert table.num_rows == len(report.lines)
    assert table.column("cost").to_pylist() == [Decimal(line.cost) for line in report.lines]
    assert table.column("ns").to_pylist() == [line.ns for line in report.lines]
    assert set(table.column("tag:team").to_pylist()) == {"search", "shop"}
    assert set(table.column("gpu").to_pylist()) == {"H100", "L4", "host"}


def test_a_gateway_without_pyarrow_says_what_to_install(month: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """And names the format."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as where it is not installed
    with pytest.raises(BadInput, match=r"pilotlight\[parquet\]") as refused:
        as_parquet(usage_report(month, "acme", FIRST, UNTIL), GROUPS)
    assert refused.value.more["field"] == "format"
