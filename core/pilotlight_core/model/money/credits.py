"""Prepaid credits: what a tenant has paid ahead, and how its spending draws on it. Pure; money is in nano-dollars.

Grants are drawn on in the order of their priority, the smallest first, of those that end first, of the oldest: as they
were given. What is left of a grant when the day begins on which it ends lapses, and if it was given on that very day,
then. What nothing covers is owed, and the next grant pays it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.money.budgets import MOST_AMOUNT

MOST_GRANTS = 1_000
"""Of one tenant, those that have ended included."""
NEVER = "9999-12-31"


class CreditGrant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was paid ahead at once."""

    id: str
    amount: Annotated[int, Meta(ge=1, le=MOST_AMOUNT)]
    begins: str
    """The UTC day from which on it may be spent, such as 2026-11-26."""
    ends: str = ""
    """The UTC day from which on it may not be spent any more; "": never."""
    priority: int = 0
    """Of several the smallest is spent first."""
    note: str = ""
    """For people."""


class CreditsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The grants of one tenant. Key: `credit.{tenant}`."""

    tenant: str
    grants: tuple[CreditGrant, ...] = ()


class CreditChange(StrEnum):
    GRANTED = "granted"
    SPENT = "spent"
    LAPSED = "lapsed"  # it ended before it was spent
    OWED = "owed"  # no grant covered it
    PAID = "paid"  # what was owed, by a grant that came later


class CreditLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a balance's history."""

    day: str
    change: CreditChange
    grant: str
    """Its id; "": of what is owed."""
    amount: int
    balance: int
    """After it; negative: it is owed."""


class CreditAccount(msgspec.Struct, frozen=True, kw_only=True):
    """What has come of a tenant's grants."""

    lines: tuple[CreditLine, ...]
    left: dict[str, int]
    """By grant."""
    owed: int
    lapsed: int

    @property
    def balance(self) -> int:
        return sum(self.left.values()) - self.owed


def draw(grants: Iterable[CreditGrant], spent: Iterable[tuple[str, int]], until: str) -> CreditAccount:
    """The account of some grants up to and with the UTC day `until`; `spent` has what each day cost."""
    book = _Drawing()
    by_day: dict[str, int] = {}
    for day, amount in spent:
        by_day[day] = by_day.get(day, 0) + amount
    known = sorted(grants, key=lambda grant: grant.begins)
    first = known[0].begins if known else NEVER
    ends = {grant.ends for grant in known if grant.ends}
    for day in sorted({*by_day, *ends, *(grant.begins for grant in known)}):
        if first <= day <= until:
            book.end_grants(day)
            for grant in known:
                if grant.begins == day:
                    book.grant(day, grant)
            book.end_grants(day)  # what was ended on the day on which it was given
            book.spend(day, by_day.get(day, 0))
    return CreditAccount(lines=tuple(book.lines), left=book.left, owed=book.owed, lapsed=book.lapsed)


def prepaid_amount(grants: Iterable[CreditGrant], spent: Iterable[tuple[str, int]], until: str) -> int:
    """What may have been spent in all by the UTC day `until` without owing: less all spending it is the balance.

    `spent` has what each day cost, those before the first grant included.
    """
    known, by_day = list(grants), list(spent)
    first = min((grant.begins for grant in known), default=NEVER)
    before = sum(amount for day, amount in by_day if day < first)
    given = sum(grant.amount for grant in known if grant.begins <= until)
    return max(0, min(MOST_AMOUNT, before + given - draw(known, by_day, until).lapsed))


def lumped(grants: Iterable[CreditGrant], spent: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """The same spending on fewer days, which draws on the grants alike.

    Between two days on which a grant begins or ends, what follows each other is of the first day; but for days on which
    more is given back than spent.
    """
    changes = sorted({day for grant in grants for day in (grant.begins, grant.ends) if day})
    sums: dict[str, int] = {}
    for day, amount in spent:
        sums[day] = sums.get(day, 0) + amount
    lumps: list[tuple[str, int]] = []
    last = -1
    for day, amount in sorted(sums.items()):
        place = bisect_right(changes, day)
        if lumps and place == last and amount >= 0 <= lumps[-1][1]:
            lumps[-1] = lumps[-1][0], lumps[-1][1] + amount
        else:
            lumps.append((day, amount))
        last = place
    return lumps


class _Drawing:
    """An account as its days go by."""

    def __init__(self) -> None:
        self.lines: list[CreditLine] = []
        self.left: dict[str, int] = {}
        self.owed = self.lapsed = 0
        self._grants: list[CreditGrant] = []

    def end_grants(self, day: str) -> None:
        """What has ended by a day lapses."""
        for grant in [grant for grant in self._grants if grant.ends and grant.ends <= day]:
            self._grants.remove(grant)
            amount, self.left[grant.id] = self.left[grant.id], 0
            self.lapsed += amount
            self._note(day, CreditChange.LAPSED, grant.id, amount)

    def grant(self, day: str, grant: CreditGrant) -> None:
        """A grant begins; it pays first what is owed."""
        self._grants.append(grant)
        self._grants.sort(key=lambda one: (one.priority, one.ends or NEVER, one.begins))
        self.left[grant.id] = grant.amount
        self._note(day, CreditChange.GRANTED, grant.id, grant.amount)
        paid = min(self.owed, grant.amount)
        self.owed -= paid
        self.left[grant.id] -= paid
        self._note(day, CreditChange.PAID, grant.id, paid)

    def spend(self, day: str, amount: int) -> None:
        """A day cost so much."""
        for grant in self._grants:
            taken = min(amount, self.left[grant.id])
            self.left[grant.id] -= taken
            amount -= taken
            self._note(day, CreditChange.SPENT, grant.id, taken)
        self.owed += amount
        self._note(day, CreditChange.OWED, "", amount)

    def _note(self, day: str, change: CreditChange, grant: str, amount: int) -> None:
        if amount:
            balance = sum(self.left.values()) - self.owed
            self.lines.append(CreditLine(day=day, change=change, grant=grant, amount=amount, balance=balance))
