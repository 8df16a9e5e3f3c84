"""Receipts are written as narrow rows, and say what those of a row for each line said.

`revision_0007.sql` is a ledger as the last code with such rows made it of `EVENTS`, and `revision_0007.json` what that
code read from it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pilotlight_core.model.messages.usage import CallShare, LeaseState
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.ledger.call_receipts import merged, receipt_statement
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import call_line, call_receipt, receipt_line, receipt_terms
from pilotlight_gateway.ledger.usage_queries import receipts
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, delivered, event

HERE = Path(__file__).parent
HOST = {"core_ppm": 2_000_000, "gib_ppm": 4_000_000}
TOLD = CallShare(
    "a", "acme", 3, "raised", 4, key="key_1", tags={"stage": "test"}, fault=Fault.TENANT, units={"prompt_tokens": 12}
)
EVENTS = [
    event(
        1, 0, 6, LeaseState.BUSY, ended_at=MIDNIGHT, wall_ns=int(MIDNIGHT) * SECOND + 6, tags={"team": "search"},
        shares=(TOLD, CallShare("b", "acme", 2, key="key_1"), CallShare("c", "rival", 1, "ok")), **HOST,
    ),
    event(2, 6, 9, LeaseState.IDLE, ended_at=MIDNIGHT, wall_ns=int(MIDNIGHT) * SECOND + 9, **HOST),
    busy(3, 9, ("d", 2 * SECOND, "ok"), ended_at=MIDNIGHT + 1.0, **HOST),
    busy(4, 9 + 2 * SECOND, ("e", 7, "ok"), ended_at=MIDNIGHT + 1.0),
]  # fmt: skip
"""A call that says all it can, one that runs on, one of another tenant, one over midnight, and one without a host."""


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[Ledger]:
    """The ledger of before, upgraded."""
    path = tmp_path / "before.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript((HERE / "revision_0007.sql").read_text())
    connection.close()
    ledger = Ledger(f"sqlite:///{path}", load_prices())
    yield ledger
    ledger.close()


def said_before() -> dict[str, list[dict[str, Any]]]:
    """The lines of each call's receipt, as they were read before, by price and day."""
    told = json.loads((HERE / "revision_0007.json").read_text())
    return {call: sorted(lines, key=place) for call, lines in told.items()}


def said_by(ledger: Ledger) -> dict[str, list[dict[str, Any]]]:
    """The same as they are read now."""
    found = {name: receipts(ledger, *name.split()) for name in said_before()}
    return {
        name: sorted((without_memory(line | {"cost": str(line["cost"])}) for line in lines), key=place)
        for name, lines in found.items()
    }


def without_memory(line: dict[str, Any]) -> dict[str, Any]:
    """A line as it was before it had memory and a discount, of which it says nothing."""
    assert line["memory"] == line["discount"] == 0
    return {name: value for name, value in line.items() if name not in ("memory", "discount")}


def place(line: dict[str, Any]) -> tuple[str, str]:
    return line["day"], line["price"]


def test_receipts_say_what_rows_for_each_line_said(ledger: Ledger) -> None:
    """Each line of each call, column by column, in one row for all that a call paid on a day."""
    ledger.fold("USAGE", 5, delivered(EVENTS))

    assert said_by(ledger) == said_before()
    assert len(ledger.read(sa.select(call_receipt))) == 6
    assert len(ledger.read(sa.select(receipt_terms))) == 5
    assert ledger.read(sa.select(call_line)) == []


def test_receipts_of_before_are_kept(upgraded: Ledger) -> None:
    """They are read as they were, and what ends later is added to them, to the nanosecond."""
    assert said_by(upgraded) == said_before()
    before = said_before()["acme b"]

    upgraded.fold("USAGE", 6, delivered([busy(5, 10 + 2 * SECOND, ("b", 5, "ok"), **HOST)]))

    now = receipts(upgraded, "acme", "b")
    assert sum(line["ns"] for line in now) == sum(line["ns"] for line in before) + 3 * 5
    assert sorted(line["outcome"] for line in now if line["price"] == "cpu") == ["", "ok"]


def test_receipts_of_before_are_pruned_with_the_others(upgraded: Ledger) -> None:
    """By their day."""
    upgraded.prune(MIDNIGHT)

    assert {line["day"] for line in upgraded.read(sa.select(receipt_line))} == {"2026-09-22"}
    upgraded.prune(MIDNIGHT + 2 * 86_400.0)
    assert upgraded.read(sa.select(receipt_line)) == []


def test_rows_are_written_as_they_are() -> None:
    """The statement has a place for each column in order, and no other: a value of its own would not let them in."""
    statement = receipt_statement()

    assert statement.count("?") == len(call_receipt.columns)
    written = statement.split("(", 2)[1].split(")")[0]
    assert written.split(", ") == [column.name for column in call_receipt.columns]


def test_shares_of_one_call_are_added_up_as_the_database_does() -> None:
    """For databases that take one row for each receipt."""
    first, second = (7, "a", 5, "", 3, "", "", "{}"), (7, "a", 6, "ok", 2, "none", "", "")
    assert merged([first, (8, "a", 1, "", 1, "", "", ""), second]) == [
        (7, "a", 11, "ok", 3, "none", "", "{}"), (8, "a", 1, "", 1, "", "", ""),
    ]  # fmt: skip


def test_calls_are_written_in_one_go(ledger: Ledger) -> None:
    """SQLite's driver gets all rows of a fold as the tuples that the fold made, PostgreSQL's one text."""
    given: list[Any] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        if "INTO call_receipt" in statement:
            given.append((many, parameters))

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        ledger.fold("USAGE", 5, delivered(EVENTS))
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)

    ((many, rows),) = given
    if ledger._engine.dialect.name == "postgresql":
        assert [row["call"] for row in json.loads(rows[0])] == list("abcdde")  # d was billed at two rates
        return
    assert many
    assert [(type(row), row[1]) for row in rows] == [(tuple, call) for call in "abcdde"]
