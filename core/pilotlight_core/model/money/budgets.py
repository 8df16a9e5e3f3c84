"""Budgets: what a tenant may spend in a period, and what a home of limits keeps of it for the next one.

Money is in whole nano-dollars. A period begins at the midnight of its zone, or at the next whole hour of UTC where the
zone's midnight is none: the ledger sums by hours.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from pilotlight_core.model.errors import BadInput

MOST_BUDGETS = 100
"""Of one tenant that it has set, and as many that operators have."""
MOST_ZONES = 8
"""Among these."""
MOST_THRESHOLDS = 10
PREPAID = "prepaid"
"""The id of the prepaid budget."""
MOST_REACHED = 200
"""Of one tenant, that are kept to be shown."""
MOST_AMOUNT = 10**18
"""A thousand million dollars."""
THRESHOLDS = (50, 80, 100)
NEVER_ENDS = float("inf")
HOUR_S = 3_600
NOT_ZONES = {"localtime", "Factory", "posixrules"}
"""Files among those of zones."""


class BudgetPeriod(StrEnum):
    DAY = "day"
    MONTH = "month"
    LIFETIME = "lifetime"  # since ever; it never begins anew


class BudgetMode(StrEnum):
    HARD = "hard"  # the worst case of each call is reserved: they never spend more
    SOFT = "soft"  # what nearly all calls take is reserved: more of them run at a time, and some may go beyond


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What may be spent in each period."""

    id: str
    """`budget_id` of its scope and period: there is one of each."""
    amount: Annotated[int, Meta(ge=0, le=MOST_AMOUNT)]
    """Nano-dollars."""
    period: BudgetPeriod = BudgetPeriod.MONTH
    tz: str = "UTC"
    """The zone at whose midnight a period begins."""
    function: str = ""
    """`tenant:app.function`; "": all."""
    key: str = ""
    """The id of an API key; "": all."""
    mode: BudgetMode = BudgetMode.HARD
    by_operator: bool = False
    """Whether an operator has set it: others do not change it."""
    thresholds: tuple[int, ...] = THRESHOLDS
    """Percent of it at which the tenant is told, once each in a period; rising."""
    prepaid: bool = False
    """For a lifetime, and `amount` follows the tenant's credit."""


class BudgetsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The budgets of one tenant. Key: `budget.{tenant}`."""

    tenant: str
    budgets: tuple[Budget, ...] = ()


class BudgetSpan(NamedTuple):
    """A period of a budget: unix seconds, from the first to before the second."""

    begins: int
    ends: float


class Tranche(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much of a budget a home has taken in the present period. Nano-dollars."""

    begins: int
    """Of the period."""
    taken: int = 0
    """What calls may have cost in it, at most: a next home counts it as spent until the ledger tells what was."""
    noted: int = 0
    """What of it was known to be spent when this was written."""
    presumed: tuple[tuple[int, float], ...] = ()
    """What of the rest may have been spent at the instants (unix seconds) at which the ledger has it if it was."""
    spent: int = 0
    """All that was known to be spent, with what passes no admission."""
    amount: int = 0
    """The budget's, then."""
    function: str = ""
    key: str = ""
    is_exhausted: bool = False
    """Nothing is left: containers for which nobody calls are ended."""
    told: tuple[int, ...] = ()
    """The thresholds that were reached in the period."""
    told_at: tuple[float, ...] = ()
    """When, in unix seconds."""


class ReachedThreshold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A threshold of a budget that was reached, also in a period that is over."""

    budget: str
    percent: int
    at: float
    """Unix seconds."""
    begins: int
    """Of the period."""
    amount: int
    """The budget's, then."""
    function: str = ""
    key: str = ""


class HomeTranches(msgspec.Struct, frozen=True, kw_only=True):
    """What the home of a tenant's limits has taken of its budgets, by their ids. Key: `home.{tenant}`."""

    tenant: str
    tranches: dict[str, Tranche] = {}
    reached: tuple[ReachedThreshold, ...] = ()
    """The last `MOST_REACHED`, the oldest first."""


class HandedBudgets(msgspec.Struct, frozen=True, array_like=True):
    """A tenant's budgets at a home that ends in order: it holds while the record has the revision that it had there."""

    tenant: str
    revision: int
    tranches: dict[str, Tranche]


def with_reached(before: tuple[ReachedThreshold, ...], tranches: dict[str, Tranche]) -> tuple[ReachedThreshold, ...]:
    """The thresholds that were reached, with those that tranches tell of."""
    known = {(one.budget, one.begins, one.percent) for one in before}
    new = [
        ReachedThreshold(
            budget=name, percent=percent, at=at, begins=one.begins, amount=one.amount, function=one.function,
            key=one.key,
        )
        for name, one in tranches.items()
        for percent, at in zip(one.told, one.told_at, strict=False)
        if (name, one.begins, percent) not in known
    ]  # fmt: skip
    return tuple(sorted((*before, *new), key=lambda one: one.at)[-MOST_REACHED:]) if new else before


class BilledSpending(msgspec.Struct, frozen=True, kw_only=True):
    """What the ledger has of a budget's period. Nano-dollars, rounded up."""

    begins: int
    calls: int = 0
    other: int = 0
    """What passes no admission: containers that load, wait and drain."""


class BilledBudgets(msgspec.Struct, frozen=True, kw_only=True):
    """What the ledger has of a tenant's budgets, by their ids. Key: `ledger.{tenant}`."""

    tenant: str
    upto: float
    """Unix seconds: all usage is in it that the bus had by then."""
    budgets: dict[str, BilledSpending] = {}


def budget_id(period: BudgetPeriod, function: str = "", key: str = "") -> str:
    """Such as `month`, `day:acme:zoo.chat` or `month:key:key_1f`."""
    return ":".join(part for part in (period.value, function, f"key:{key}" if key else "") if part)


def check_budget(budget: Budget) -> None:
    """Check what the type alone does not say.

    Raises:
        BadInput: names the field.
    """
    if budget.tz != "UTC" and budget.tz not in _zone_names():
        raise _no_zone(budget.tz)
    if budget.function and budget.key:
        raise BadInput("key: a budget is of a function or of a key, not of both.", field="key")
    percents = budget.thresholds
    rising = all(0 < percent <= 1_000 for percent in percents) and list(percents) == sorted(set(percents))
    if not rising or len(percents) > MOST_THRESHOLDS:
        raise BadInput(
            f"thresholds: expected at most {MOST_THRESHOLDS} rising percents from 1 to 1000, such as 50,80,100.",
            field="thresholds",
        )


@lru_cache(64)
def zone_of(name: str) -> tzinfo:
    """The zone of an IANA name.

    Raises:
        BadInput: names the field `tz`.
    """
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # here: few budgets have a zone of their own

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise _no_zone(name) from None


@lru_cache(1)
def _zone_names() -> frozenset[str]:
    """Those of the IANA: what only this machine has a file of, such as `localtime`, another gateway cannot read."""
    from zoneinfo import available_timezones  # here: as above

    return frozenset(
        name for name in available_timezones() - NOT_ZONES if not name.startswith(("posix/", "right/"))
    )  # fmt: skip


def _no_zone(name: str) -> BadInput:
    return BadInput(f'tz: {name[:64]!r} is no time zone: expected one such as "Europe/Berlin".', field="tz")


@lru_cache(4_096)
def span_of(period: BudgetPeriod, tz: str, at: int) -> BudgetSpan:
    """The period in which the unix second `at` is."""
    if period is BudgetPeriod.LIFETIME:
        return BudgetSpan(0, NEVER_ENDS)
    zone = zone_of(tz)
    now = datetime.fromtimestamp(at, zone)
    first = datetime(now.year, now.month, now.day if period is BudgetPeriod.DAY else 1, tzinfo=zone)
    begins = _whole_hour(first)
    if begins > at:  # between a midnight and the whole hour behind it
        first = _before(first, period)
        begins = _whole_hour(first)
    return BudgetSpan(begins, _whole_hour(_after(first, period)))


def _after(first: datetime, period: BudgetPeriod) -> datetime:
    day = first.replace(tzinfo=None)
    then = day + timedelta(days=1) if period is BudgetPeriod.DAY else (day + timedelta(days=32)).replace(day=1)
    return then.replace(tzinfo=first.tzinfo)


def _before(first: datetime, period: BudgetPeriod) -> datetime:
    then = first.replace(tzinfo=None) - timedelta(days=1)
    return (then if period is BudgetPeriod.DAY else then.replace(day=1)).replace(tzinfo=first.tzinfo)


def _whole_hour(at: datetime) -> int:
    return -(-int(at.timestamp()) // HOUR_S) * HOUR_S
