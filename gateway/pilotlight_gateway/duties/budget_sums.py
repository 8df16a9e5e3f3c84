"""What the ledger has of budgets: what calls cost in their periods, and what passes no admission.

Hours that are long over are summed once a minute, in the parts between the beginnings of periods; the last ones each
time, by hours. So a look at many budgets of many periods is a look at the rows of two hours. Names of functions do not
say whose they are; their versions do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

import sqlalchemy as sa

from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.money.budgets import HOUR_S, BilledSpending, HomeTranches, Tranche
from pilotlight_core.model.pipelines.pipeline import hook_place
from pilotlight_core.model.units import NANO_USD, NS_PER_HOUR, WHOLE_DEVICE
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import bound_container, folded, usage_day, usage_hour

ANEW_S = 60.0
"""Seconds between two sums over all hours of a period: what is booked late is seen so late."""
RECENT_H = 2
"""The last hours, which are summed each time."""
SCALE = WHOLE_DEVICE * NS_PER_HOUR * NANO_USD
NAMED_AT_MOST = 500
"""Names in one question; of more tenants the rows of all are read."""
KNOWN_AT_MOST = 10_000
"""Versions whose owners are kept."""


class SpendingKey(NamedTuple):
    """What a tenant spends together."""

    function: str
    """`app.function`: of whatever owner."""
    version: str
    key: str
    is_call: bool


Spending = dict[SpendingKey, int]
"""Of one tenant, in parts (1/`SCALE`) of a nano-dollar."""
HourSums = dict[str, dict[str, Spending]]
"""By the first hour of what is summed together, and by tenant."""


@dataclass(frozen=True, kw_only=True)
class _OverSums:
    """The hours that are over, in the parts that begin with a period."""

    upto: str
    summed_at: float
    begins: frozenset[str] = frozenset()
    tenants: frozenset[str] = frozenset()
    parts: HourSums = field(default_factory=dict)


class BudgetSums:
    """Sums of one ledger. Methods block: call them in a thread, one at a time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._over = _OverSums(upto="", summed_at=float("-inf"))
        self._owners: dict[str, tuple[str, float]] = {}
        """By version: its owner, "" if nobody knows, and when that was looked up."""

    def read(
        self, budgets: Iterable[HomeTranches], stream: str, at: float
    ) -> tuple[int, dict[str, dict[str, BilledSpending]]]:
        """How far the stream is folded at the unix second `at`, and by tenant what is billed of each of its budgets."""
        wanted = {one.tenant: one.tranches for one in budgets if one.tranches}
        begins = frozenset(_hour(tranche.begins) for tranches in wanted.values() for tranche in tranches.values())
        cut, tenants = _hour(max(0.0, at - RECENT_H * HOUR_S)), frozenset(wanted)
        with self._ledger.snapshot() as connection:
            seq = connection.scalar(sa.select(folded.c.seq).where(folded.c.stream == stream)) or 0
            sums = [self._sums_over(connection, begins, tenants, cut, at), _sums_by_hour(connection, cut, tenants)]
            spent = {tenant: [*_of_tenant(tenant, sums)] for tenant in wanted}
            self._learn_owners(connection, _versions_met(wanted, spent), at)
        return seq, {tenant: self._billed(tenant, tranches, spent[tenant]) for tenant, tranches in wanted.items()}

    def _sums_over(
        self, connection: sa.Connection, begins: frozenset[str], tenants: frozenset[str], cut: str, at: float
    ) -> HourSums:
        """The hours before `cut`, read anew each minute. Between, who and what was asked for once stays in them."""
        over = self._over
        is_old = over.upto != cut or at - over.summed_at > ANEW_S
        if is_old or not (begins <= over.begins and tenants <= over.tenants):
            if not is_old:
                begins, tenants = begins | over.begins, tenants | over.tenants
            firsts = sorted(first for first in begins if first < cut)
            parts = {
                first: _sums(connection, first, until, tenants) for first, until in pairwise([*firsts, cut])
            }  # fmt: skip
            summed_at = at if is_old else over.summed_at
            self._over = _OverSums(upto=cut, summed_at=summed_at, begins=begins, tenants=tenants, parts=parts)
        return self._over.parts

    def _learn_owners(self, connection: sa.Connection, versions: set[str], at: float) -> None:
        """Look up whose the versions are that are not known, those that nobody knew once a minute."""
        if len(self._owners) > KNOWN_AT_MOST:
            self._owners.clear()
        never = "", float("-inf")
        known = ((version, *self._owners.get(version, never)) for version in versions)
        unknown = [version for version, owner, looked_at in known if not owner and at - looked_at > ANEW_S]
        asked = unknown[:NAMED_AT_MOST]  # the others at the next look
        self._owners.update(dict.fromkeys(asked, ("", at)))
        if asked:
            self._owners.update((version, (owner, at)) for version, owner in connection.execute(_owners_of(asked)))

    def _billed(
        self, tenant: str, tranches: dict[str, Tranche], spent: list[tuple[str, Spending]]
    ) -> dict[str, BilledSpending]:
        found = {}
        for name, tranche in tranches.items():
            first, sums = _hour(tranche.begins), [0, 0]
            for begins, spending in spent:
                if begins >= first:
                    for key, amount in spending.items():
                        if tranche.key in ("", key.key) and self._is_of(key, tranche, tenant):
                            sums[key.is_call] += amount
            other, calls = (-(-amount // SCALE) for amount in sums)
            found[name] = BilledSpending(begins=tranche.begins, calls=calls, other=other)
        return found

    def _is_of(self, key: SpendingKey, tranche: Tranche, tenant: str) -> bool:
        """Whether spending is of the tranche's function. What is no call is paid by the function's owner."""
        if not tranche.function:
            return True
        owner, _, function = tranche.function.partition(":")
        if key.function != function:
            return False
        return owner == (self._owners.get(key.version, ("", 0.0))[0] if key.is_call else tenant)


def _of_tenant(tenant: str, sums: Iterable[HourSums]) -> Iterator[tuple[str, Spending]]:
    for part in sums:
        for first, by_tenant in part.items():
            if (spending := by_tenant.get(tenant)) is not None:
                yield first, spending


def _versions_met(
    wanted: dict[str, dict[str, Tranche]], spent: dict[str, list[tuple[str, Spending]]]
) -> set[str]:  # fmt: skip
    """The versions of calls that may be of a function with a budget."""
    found = set()
    for tenant, tranches in wanted.items():
        names = {tranche.function.partition(":")[2] for tranche in tranches.values() if tranche.function}
        if names:
            keys = (key for _, spending in spent[tenant] for key in spending)
            found |= {key.version for key in keys if key.is_call and key.function in names}
    return found


def _owners_of(versions: Iterable[str]) -> sa.Select[Any]:
    """Who had containers of the versions: those that are bound, and in days that are long over those that idled."""
    bound, day, named = bound_container.c, usage_day.c, list(versions)
    idled = (day.version.in_(named), day.tenant != "", day.state != LeaseState.BUSY)
    both = sa.union(
        sa.select(bound.version, bound.tenant).where(bound.version.in_(named)),
        sa.select(day.version, day.tenant).where(*idled),
    ).subquery()
    return sa.select(both.c.version, both.c.tenant)


def _sums(connection: sa.Connection, first: str, until: str, tenants: frozenset[str]) -> dict[str, Spending]:
    """The hours from `first` to before `until`, by tenant."""
    found: dict[str, Spending] = {}
    for row in connection.execute(_grouped(first, until, tenants)).mappings():
        _add(found, row)
    return found


def _sums_by_hour(connection: sa.Connection, first: str, tenants: frozenset[str]) -> HourSums:
    """Each hour from `first` on."""
    found: HourSums = {}
    for row in connection.execute(_grouped(first, "~", tenants, usage_hour.c.hour)).mappings():
        _add(found.setdefault(row["hour"], {}), row)
    return found


def _grouped(first: str, until: str, tenants: frozenset[str], *more: sa.Column[Any]) -> sa.Select[Any]:
    table = usage_hour.c
    which = (*more, table.tenant, table.app, table.function, table.version, table.key_id, table.state, table.ppm,
             table.rate, table.discount)  # fmt: skip
    of_whom = table.tenant.in_(sorted(tenants)) if len(tenants) <= NAMED_AT_MOST else table.tenant != ""
    return (
        sa.select(*which, sa.func.sum(table.ns).label("ns"))
        .where(table.hour >= first, table.hour < until, of_whom)
        .group_by(*which)
    )


def _add(sums: dict[str, Spending], row: Any) -> None:
    is_call = row["state"] == LeaseState.BUSY or bool(row["key_id"])
    function = hook_place(row["function"])[0]  # what a hook costs is its class's
    key = SpendingKey(f"{row['app']}.{function}", row["version"], row["key_id"], is_call)
    spending = sums.setdefault(row["tenant"], {})
    cost = int(row["ns"]) * row["ppm"] * row["rate"] * (NANO_USD - row["discount"])
    spending[key] = spending.get(key, 0) + cost


def _hour(at: float) -> str:
    """As the ledger names hours."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H") if at else ""
