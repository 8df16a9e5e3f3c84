"""Writes the receipts of calls: thousands of rows a second, where all else in a fold is a few.

The rows go to the driver as they are, under a statement that is compiled once: SQLAlchemy's dictionary for each row
took most of a fold's time. A statement with a parameter of its own would not take them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import sqlalchemy as sa

from pilotlight_gateway.ledger.ledger_entries import LedgerRows
from pilotlight_gateway.ledger.ledger_tables import call_line, call_receipt, cold_start, receipt_terms

CALL_FACTS = ("outcome", "fault", "units", "tags")
"""Of several shares the last that says something holds."""
PLACES = {"sqlite": "qmark", "postgresql": "format"}
"""How a database's driver takes values by their place."""
NOTHING: sa.ColumnElement[str] = sa.literal_column("''")


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
    terms = [each._asdict() | {"id": number} for each, number in entries.terms.items()]
    connection.execute(dialect_module(dialect).insert(receipt_terms).on_conflict_do_nothing(), terms)
    connection.exec_driver_sql(receipt_statement(dialect), entries.calls)


def prune_receipts(connection: sa.Connection, day: str) -> None:
    """Delete the receipts of days before `day`."""
    old = receipt_terms.c.day < day
    of_old = call_receipt.c.terms.in_(sa.select(receipt_terms.c.id).where(old))
    connection.execute(sa.delete(call_receipt).where(of_old))
    connection.execute(sa.delete(receipt_terms).where(old))
    connection.execute(sa.delete(call_line).where(call_line.c.day < day))
    connection.execute(sa.delete(cold_start).where(cold_start.c.day < day))


@cache
def receipt_statement(dialect: str) -> str:
    """What adds a `CallRow` to its receipt, with a place for each of its values in order."""
    module = dialect_module(dialect)
    insert = module.insert(call_receipt)
    own, new = call_receipt.c, insert.excluded
    grown = {
        **{name: sa.case((new[name] != NOTHING, new[name]), else_=own[name]) for name in CALL_FACTS},
        "ns": own.ns + new.ns,
        "batch_size": sa.case((new.batch_size > own.batch_size, new.batch_size), else_=own.batch_size),
    }
    added = insert.on_conflict_do_update(index_elements=["terms", "call"], set_=grown)
    return str(added.compile(dialect=module.dialect(paramstyle=PLACES[dialect])))
