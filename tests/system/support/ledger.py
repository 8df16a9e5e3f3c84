"""The ledger's rows, read beside those who write them."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from pilotlight_core.model.units import WHOLE_DEVICE

LATE_NS = 5 * 10**9


class LedgerOwner(Protocol):
    """A platform, on one host or on several."""

    @property
    def ledger_url(self) -> str:
        """Of PostgreSQL; "": it is in the state folder."""

    @property
    def state(self) -> Path: ...


def rows(platform: LedgerOwner, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """What a query finds. It has a `?` for each value."""
    if platform.ledger_url:
        import psycopg

        with psycopg.connect(platform.ledger_url) as connection:
            return connection.execute(query.replace("?", "%s").encode(), values or None).fetchall()
    with closing(sqlite3.connect(f"file:{platform.state / 'ledger.sqlite'}?mode=ro", uri=True)) as database:
        return database.execute(query, values).fetchall()


def receipts(platform: LedgerOwner, function: str = "%") -> dict[str, int]:
    """Nanoseconds per call, of its slice."""
    sums: dict[str, int] = defaultdict(int)
    query = "SELECT call, ns FROM receipt_line WHERE function LIKE ? AND price NOT IN ('cpu_core', 'memory_gib')"
    for call, ns in rows(platform, query, function):
        sums[call] += ns
    return sums


def billed(platform: LedgerOwner) -> dict[str, int]:
    """Nanoseconds per call that its tenant pays: what runs again after a loss has lines that the operator pays."""
    sums: dict[str, int] = defaultdict(int)
    query = "SELECT call, ns FROM receipt_line WHERE tenant <> '' AND price NOT IN ('cpu_core', 'memory_gib')"
    for call, ns in rows(platform, query):
        sums[call] += ns
    return sums


def ended(platform: LedgerOwner, function: str = "%") -> set[str]:
    """Calls of which the last part is there: one that ran while the meter was read has several."""
    return {
        call
        for (call,) in rows(platform, "SELECT call FROM receipt_line WHERE function LIKE ? AND outcome != ''", function)
    }


def check_no_instant_is_sold_twice(platform: LedgerOwner) -> None:
    """The metered intervals of a slice follow each other, whatever incarnation of the agent has written them."""
    ends: dict[str, int] = defaultdict(int)
    query = "SELECT node || ' ' || slice, t0, t1 FROM lease_line ORDER BY node, slice, t0, t1"
    for part, t0, t1 in rows(platform, query):
        assert t0 >= ends[part], f"{part}: {ends[part] - t0} ns are metered twice"
        ends[part] = t1


def check_nothing_is_in_quarantine(platform: LedgerOwner) -> None:
    """What honest nodes report has its place in the ledger."""
    assert rows(platform, "SELECT node, reason, text FROM quarantined_usage") == []


def check_devices_are_accounted_whole(platform: LedgerOwner, price: str = "%") -> None:
    """At each instant that is metered, the parts of a device are all of it: however it was cut, whoever died.

    Of the last seconds some parts may not be there yet: who pays for them has a record of his own.
    """
    query = "SELECT node || ' ' || device, ppm, t0, t1 FROM lease_line WHERE price LIKE ? ORDER BY t0"
    devices: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for device, ppm, t0, t1 in rows(platform, query, price):
        devices[device].append((ppm, t0, t1))
    assert devices
    for device, parts in devices.items():
        change: dict[int, int] = defaultdict(int)
        for ppm, t0, t1 in parts:
            change[t0] += ppm
            change[t1] -= ppm
        given = 0
        for t0, t1 in pairwise(sorted(change)):
            given += change[t0]
            late = t1 > max(change) - LATE_NS
            assert given == WHOLE_DEVICE or (late and given < WHOLE_DEVICE), (
                f"{device}: {given} ppm of it are metered in {t1 - t0} ns"
            )
