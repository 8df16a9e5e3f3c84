"""The bodies of `/v1/prices`: what an hour costs, and from when on."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import Request
from pilotlight_core.model.ids import END

DOLLARS_PATTERN = f"^(0|[1-9][0-9]{{0,5}})([.][0-9]{{1,9}})?{END}"


class PriceRequest(Request, frozen=True, kw_only=True):
    """`PUT /v1/prices/{price}`."""

    usd_per_hour: Annotated[str, Meta(pattern=DOLLARS_PATTERN)]
    """Dollars, exactly: at most nine places. 0 bills nothing."""
    starts: Annotated[str, Meta(max_length=40)] | None = msgspec.field(default=None, name="from")
    """A day in UTC (2026-12-01) or an instant with a zone; null: as soon as all processes can know of it."""


class PriceRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate of a price."""

    starts: str | None = msgspec.field(name="from")
    """The instant from which it holds, in UTC; null: since ever."""
    usd_per_hour: str


class PriceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A price over time."""

    price: str
    of: str
    """What an hour of it is of: device, core or GiB; of `spot`, what costs a dollar on demand."""
    usd_per_hour: str
    """Now."""
    to_come: tuple[PriceRate, ...]
    """The changes of it, in their order."""
    past: tuple[PriceRate, ...]
    """The rates that have begun, the present one last."""
    source: str
    """standard: the book's own; file: a gateway's price file; set: an operator's request."""


class PriceList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/prices`, by name."""

    prices: tuple[PriceInfo, ...]
    currency: str = "USD"
