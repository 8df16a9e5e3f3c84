"""The bodies of `/v1/tenants/{tenant}/credits`: what a tenant has paid ahead."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.budget_api import AMOUNT_PATTERN
from pilotlight_core.model.api.call_api import Request
from pilotlight_core.model.ids import END
from pilotlight_core.model.money.credits import CreditChange

DAY_PATTERN = f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{END}"


class CreditRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/tenants/{tenant}/credits`."""

    usd: Annotated[str, Meta(pattern=AMOUNT_PATTERN)]
    """Dollars, exactly: at most nine places."""
    ends: Annotated[str, Meta(pattern=DAY_PATTERN)] | None = None
    """The UTC day from which on it may not be spent any more; null: never."""
    priority: Annotated[int, Meta(ge=-1_000, le=1_000)] = 0
    """Of several grants the one with the smallest is spent first."""
    note: Annotated[str, Meta(max_length=200)] = ""
    """For people."""


class GrantInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A grant, and what is left of it."""

    id: str
    usd: str
    left_usd: str
    begins: str
    ends: str | None
    priority: int
    note: str


class BalanceLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the balance's history."""

    day: str
    change: CreditChange
    grant: str
    """Its id; "": of what no grant covered."""
    usd: str
    balance_usd: str
    """After it; negative: it is owed."""


class CreditList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/tenants/{tenant}/credits`: the balance, with what the ledger has of today."""

    balance_usd: str
    owed_usd: str
    grants: tuple[GrantInfo, ...]
    """In the order in which they were given."""
    history: tuple[BalanceLine, ...]
    """The oldest first, the last thousand."""
    currency: str = "USD"
