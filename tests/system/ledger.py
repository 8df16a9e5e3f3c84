"""The ledger's rows, read beside those who write them."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing
from typing import Any

from tests.system.platform import Platform


def rows(platform: Platform, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """What a query finds."""
    with closing(sqlite3.connect(f"file:{platform.state / 'ledger.sqlite'}?mode=ro", uri=True)) as database:
        return database.execute(query, values).fetchall()


def receipts(platform: Platform, function: str = "%") -> dict[str, int]:
    """Nanoseconds per call."""
    sums: dict[str, int] = defaultdict(int)
    for call, ns in rows(platform, "SELECT call, ns FROM call_line WHERE function LIKE ?", function):
        sums[call] += ns
    return sums


def ended(platform: Platform, function: str = "%") -> set[str]:
    """Calls of which the last part is there: one that ran while the meter was read has several."""
    return {
        call
        for (call,) in rows(platform, "SELECT call FROM call_line WHERE function LIKE ? AND outcome != ''", function)
    }


def check_no_instant_is_sold_twice(platform: Platform) -> None:
    """The metered intervals of a slice follow each other, whatever incarnation of the agent has written them."""
    ends: dict[str, int] = defaultdict(int)
    query = "SELECT node || ' ' || slice, t0, t1 FROM lease_line ORDER BY node, slice, t0, t1"
    for part, t0, t1 in rows(platform, query):
        assert t0 >= ends[part], f"{part}: {ends[part] - t0} ns are metered twice"
        ends[part] = t1
