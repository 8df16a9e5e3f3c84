"""Many rows in one statement, alike in both databases."""

from __future__ import annotations

import sqlalchemy as sa

from pilotlight_gateway.ledger.bulk_rows import KEYS_AT_A_TIME, insert_rows, rows_among
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import known_device, lease_line
from tests.gateway.ledger.metering import SECOND, delivered, event


def test_rows_are_new_or_grow_those_that_are_there(ledger: Ledger) -> None:
    """As the statement says; nothing is no statement."""
    rows = [{"node": "n1", "device": f"d'{number}\"", "since": 1.5, "ns": 2**61} for number in range(3)]
    grown = {"ns": "known_device.ns + excluded.ns", "since": "excluded.since"}
    with ledger._engine.begin() as connection:
        insert_rows(connection, known_device, [])
        insert_rows(connection, known_device, rows[:2], keys=("node", "device"), grown=grown)
        again = [row | {"ns": 5, "since": 2.25} for row in rows[1:]]
        insert_rows(connection, known_device, again, keys=("node", "device"), grown=grown)

    found = ledger.read(sa.select(known_device).order_by(known_device.c.device))
    assert [(row["device"], row["ns"], row["since"]) for row in found] == [
        ("d'0\"", 2**61, 1.5), ("d'1\"", 2**61 + 5, 2.25), ("d'2\"", 5, 2.25),
    ]  # fmt: skip


def test_each_kind_of_value_comes_back(ledger: Ledger) -> None:
    """Truths, nothing at all, and numbers of 62 bits."""
    of_before = event(1, 0, SECOND)
    now = event(2, 0, SECOND, used=True, wall_ns=1_790_078_400 * SECOND, ended_at=1_790_078_400.0)
    ledger.fold("USAGE", 1, delivered([of_before, now]))

    first, second = ledger.read(sa.select(lease_line).order_by(lease_line.c.id))
    assert (first["zone"], first["used"], first["booked_from"]) == ("", None, "")
    assert (second["used"], second["wall_ns"], second["wall"]) == (True, 1_790_078_400 * SECOND, 1_790_078_400.0)


def test_rows_are_found_by_any_number_of_keys(ledger: Ledger) -> None:
    """Also by more than a statement takes."""
    rows = [{"node": f"n{number}", "device": "d", "since": 0.0, "ns": number} for number in range(3)]
    names = [f"n{number}" for number in range(2, KEYS_AT_A_TIME + 10)]
    with ledger._engine.begin() as connection:
        insert_rows(connection, known_device, rows)
        found = list(rows_among(connection, sa.select(known_device.c.ns), known_device.c.node, ["n0", *names]))
        none = list(rows_among(connection, sa.select(known_device.c.ns), known_device.c.node, []))

    assert (sorted(row[0] for row in found), none) == ([0, 2], [])
