"""What the ledger has of budgets: what calls cost in their periods, and what passes no admission.

Hours that are long over are summed once a minute, the last ones each time, so that a look at many budgets is a look at
the rows of two hours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.money.budgets import HOUR_S, BilledSpending, HomeTranches, Tranche
from pilotlight_core.model.units import NS_PER_HOUR, WHOLE_DEVICE
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import folded, usage_hour

ANEW_S = 60.0
"""Seconds between two sums over all hours of a period: what is booked late is seen so late."""
RECENT_H = 2
"""The last hours, which are summed each time."""
SCALE = WHOLE_DEVICE * NS_PER_HOUR


class SpendingKey(NamedTuple):
    """What is spent together."""

    tenant: str
    function: str
    """`app.function`."""
    key: str
    is_call: bool


Spending = dict[SpendingKey, int]
"""In parts (1/`SCALE`) of a nano-dollar."""


@dataclass
class _PeriodSums:
    """The hours of a period that are over."""

    upto: str
    summed_at: float
    spending: Spending = field(default_factory=dict)


class BudgetSums:
    """Sums of one ledger. Methods block: call them in a thread, one at a time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._over: dict[int, _PeriodSums] = {}
        """By the beginning of the period."""

    def read(
        self, budgets: Iterable[HomeTranches], stream: str, at: float
    ) -> tuple[int, dict[str, dict[str, BilledSpending]]]:
        """How far the stream is folded at the unix second `at`, and by tenant what is billed of each of its budgets."""
        wanted = {one.tenant: one.tranches for one in budgets}
        begins = {tranche.begins for tranches in wanted.values() for tranche in tranches.values()}
        for gone in self._over.keys() - begins:
            del self._over[gone]
        cut = _hour(max(0.0, at - RECENT_H * HOUR_S))
        with self._ledger.snapshot() as connection:
            seq = connection.scalar(sa.select(folded.c.seq).where(folded.c.stream == stream)) or 0
            spent = {begin: self._of_period(connection, begin, cut, at) for begin in begins}
        return seq, {tenant: _billed(tenant, tranches, spent) for tenant, tranches in wanted.items()}

    def _of_period(self, connection: sa.Connection, begins: int, cut: str, at: float) -> Spending:
        first = _hour(begins)
        over = self._over.get(begins)
        if over is None or over.upto != cut or at - over.summed_at > ANEW_S:
            spending = _sums(connection, first, cut) if first < cut else {}
            over = self._over[begins] = _PeriodSums(cut, at, spending)
        found = dict(over.spending)
        for key, amount in _sums(connection, max(first, cut), "~").items():
            found[key] = found.get(key, 0) + amount
        return found


def _sums(connection: sa.Connection, first: str, until: str) -> Spending:
    """The hours from `first` to before `until`."""
    table = usage_hour.c
    which = (table.tenant, table.app, table.function, table.key_id, table.state, table.ppm, table.rate)
    query = (
        sa.select(*which, sa.func.sum(table.ns).label("ns"))
        .where(table.hour >= first, table.hour < until, table.tenant != "")
        .group_by(*which)
    )
    found: Spending = {}
    for row in connection.execute(query).mappings():
        key = _key(row)
        found[key] = found.get(key, 0) + int(row["ns"]) * row["ppm"] * row["rate"]
    return found


def _key(row: Any) -> SpendingKey:
    is_call = row["state"] == LeaseState.BUSY or bool(row["key_id"])
    return SpendingKey(row["tenant"], f"{row['app']}.{row['function']}", row["key_id"], is_call)


def _billed(tenant: str, tranches: dict[str, Tranche], spent: dict[int, Spending]) -> dict[str, BilledSpending]:
    found = {}
    for name, tranche in tranches.items():
        function = tranche.function.partition(":")[2]
        sums = [0, 0]
        for key, amount in spent[tranche.begins].items():
            if key.tenant == tenant and function in ("", key.function) and tranche.key in ("", key.key):
                sums[key.is_call] += amount
        other, calls = (-(-amount // SCALE) for amount in sums)
        found[name] = BilledSpending(begins=tranche.begins, calls=calls, other=other)
    return found


def _hour(at: float) -> str:
    """As the ledger names hours."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H") if at else ""
