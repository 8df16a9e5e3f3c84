"""The bodies of `/v1/tenants/{tenant}/budgets`: what a tenant may spend."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import Request
from pilotlight_core.model.ids import END
from pilotlight_core.model.money.budgets import THRESHOLDS, BudgetMode, BudgetPeriod

AMOUNT_PATTERN = f"^(0|[1-9][0-9]{{0,8}})([.][0-9]{{1,9}})?{END}"


class BudgetRequest(Request, frozen=True, kw_only=True):
    """`PUT /v1/tenants/{tenant}/budgets`: set the budget of this scope and period, or replace it."""

    usd: Annotated[str, Meta(pattern=AMOUNT_PATTERN)] | None = None
    """Dollars, exactly: at most nine places. Left out of a prepaid one alone."""
    prepaid: bool = False
    """What the tenant's credit covers may be spent, and no more. Operators set it, with thresholds alone."""
    period: BudgetPeriod = BudgetPeriod.MONTH
    tz: Annotated[str, Meta(max_length=64)] = "UTC"
    """The zone at whose midnight a period begins."""
    function: Annotated[str, Meta(max_length=256)] | None = None
    """`app.function` or `owner:app.function`; null: all calls."""
    key: Annotated[str, Meta(max_length=64)] | None = None
    """The id of an API key; null: all keys."""
    mode: BudgetMode = BudgetMode.HARD
    thresholds: tuple[int, ...] = THRESHOLDS
    """Percent of it at which the tenant is told, once each in a period; rising."""


class BudgetInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A budget, and how much of it is left."""

    id: str
    usd: str
    period: BudgetPeriod
    tz: str
    function: str | None
    key: str | None
    mode: BudgetMode
    thresholds: tuple[int, ...]
    by_operator: bool
    begins: str | None
    """When its present period began, in UTC; null: it has always been."""
    resets_at: str | None
    """When its next period begins, in UTC; null: never."""
    spent_usd: str
    """What is known to be spent of it, some seconds old."""
    left_usd: str
    is_exhausted: bool
    reached: tuple[int, ...]
    """The thresholds that were reached in this period, in percent."""
    prepaid: bool = False
    """`usd` follows the tenant's credit, with what it had spent before the first grant."""


class BudgetList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/tenants/{tenant}/budgets`, in the order in which they were set."""

    budgets: tuple[BudgetInfo, ...]
    currency: str = "USD"


class BudgetLeft(msgspec.Struct, frozen=True, kw_only=True):
    """A budget that refuses a call: the member `budget` of the problem document."""

    id: str
    tenant: str
    function: str | None
    key: str | None
    period: str
    usd: str
    spent_usd: str
    reserved_usd: str
    """For calls that run: what they do not need is there again when they end."""
    left_usd: str
    asked_usd: str
    """What the call may cost: at worst, or of a soft budget what nearly all calls like it do."""
    resets_at: str | None
    """In UTC; null: never."""


def usd_text(nano: int) -> str:
    """Nano-dollars as dollars, exactly."""
    return f"{Decimal(nano).scaleb(-9).normalize():f}"


def nano_usd(text: str) -> int:
    """Dollars of at most nine places as nano-dollars."""
    return int(Decimal(text).scaleb(9))
