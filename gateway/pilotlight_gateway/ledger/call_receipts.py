"""Writes the receipts of calls: thousands of rows a second, where all else in a fold is a few.

The rows go to the driver as they are, under a statement that is compiled once: SQLAlchemy's dictionary for each row
took most of a fold's time. A statement with a parameter of its own would not take them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import sqlalchemy as sa

from pilotlight_gateway.ledger.bulk_rows import insert_rows, whole_sum
from pilotlight_gateway.ledger.ledger_entries import CallRow, LedgerRows
from pilotlight_gateway.ledger.ledger_tables import call_line, call_receipt, cold_start, nested_call, receipt_terms

CALL_FACTS = ("outcome", "fault", "units", "tags")
"""Of several shares the last that says something holds."""
CALL_COLUMNS = tuple(column.name for column in call_receipt.columns)
GROWN: Mapping[str, str] = {
    **{
        name: f"CASE WHEN excluded.{name} <> '' THEN excluded.{name} ELSE call_receipt.{name} END"
        for name in CALL_FACTS
    },
    "batch_size": "CASE WHEN excluded.batch_size > call_receipt.batch_size THEN excluded.batch_size "
    "ELSE call_receipt.batch_size END",
}
"""What becomes of a receipt to which a share is added, beside the sum of `ns`; `merged` does the same."""


def dialect_module(dialect: str) -> Any:
    """SQLAlchemy's module of a database: only one of them is loaded."""
    return import_module(f"sqlalchemy.dialects.{dialect}")


def add_receipts(connection: sa.Connection, entries: LedgerRows) -> None:
    """Add the shares of calls to their receipts, and the terms that are not there yet."""
    if not entries.calls:
        return
    dialect = connection.dialect.name
    if entries.cold_starts:
        starts = [each._asdict() for each in entries.cold_starts]
        connection.execute(dialect_module(dialect).insert(cold_start).on_conflict_do_nothing(), starts)
    if entries.nested:
        made = [each._asdict() for each in entries.nested]
        connection.execute(dialect_module(dialect).insert(nested_call).on_conflict_do_nothing(), made)
    terms = [each._asdict() | {"id": number} for each, number in entries.terms.items()]
    connection.execute(dialect_module(dialect).insert(receipt_terms).on_conflict_do_nothing(), terms)
    if dialect == "sqlite":
        connection.exec_driver_sql(receipt_statement(), entries.calls)
    else:
        rows = [dict(zip(CALL_COLUMNS, row, strict=True)) for row in merged(entries.calls)]
        insert_rows(connection, call_receipt, rows, keys=("terms", "call"), grown=_grown(dialect))


def merged(calls: Iterable[CallRow]) -> list[CallRow]:
    """The rows with one for each receipt, in the order of their first shares."""
    found: dict[tuple[int, str], CallRow] = {}
    for row in calls:
        which = row[:2]
        if (one := found.get(which)) is None:
            found[which] = row
            continue
        _, _, ns, outcome, size, fault, units, tags = row
        found[which] = (
            *which, one[2] + ns, outcome or one[3], max(size, one[4]), fault or one[5], units or one[6], tags or one[7]
        )  # fmt: skip
    return list(found.values())


def prune_receipts(connection: sa.Connection, day: str) -> None:
    """Delete the receipts of days before `day`."""
    old = receipt_terms.c.day < day
    of_old = call_receipt.c.terms.in_(sa.select(receipt_terms.c.id).where(old))
    connection.execute(sa.delete(call_receipt).where(of_old))
    connection.execute(sa.delete(receipt_terms).where(old))
    connection.execute(sa.delete(call_line).where(call_line.c.day < day))
    connection.execute(sa.delete(cold_start).where(cold_start.c.day < day))
    connection.execute(sa.delete(nested_call).where(nested_call.c.day < day))


@cache
def receipt_statement() -> str:
    """What adds a `CallRow` to its receipt in SQLite, with a place for each of its values in order."""
    places = ", ".join("?" * len(CALL_COLUMNS))
    changes = ", ".join(f"{name} = {value}" for name, value in _grown("sqlite").items())
    insert = f"INSERT INTO call_receipt ({', '.join(CALL_COLUMNS)}) VALUES ({places})"  # noqa: S608 - our own names
    return f"{insert} ON CONFLICT (terms, call) DO UPDATE SET {changes}"


def _grown(dialect: str) -> Mapping[str, str]:
    return {"ns": whole_sum(dialect, call_receipt.name, "ns"), **GROWN}
