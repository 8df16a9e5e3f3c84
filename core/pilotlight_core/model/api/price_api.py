"""The bodies of `/v1/prices`: what an hour costs, and from when on."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import Request
from pilotlight_core.model.ids import END
from pilotlight_core.model.price_book import LONGEST_MINIMUM_MS

MILLION = "million"
"""What the price of a unit is of."""
WHEN = {"anyOf": [{"format": "date"}, {"format": "date-time"}]}
"""What OpenAPI says of a day or an instant; what is wrong with one is told in a sentence."""
DOLLARS_PATTERN = f"^(0|[1-9][0-9]{{0,5}})([.][0-9]{{1,9}})?{END}"


class PriceRequest(Request, frozen=True, kw_only=True):
    """`PUT /v1/prices/{price}`."""

    usd_per_hour: Annotated[str, Meta(pattern=DOLLARS_PATTERN)]
    """Dollars, exactly: at most nine places. 0 bills nothing. Of units for a million; of `tenant.NAME` for each dollar
    of the list, at most 1."""
    starts: Annotated[str, Meta(max_length=40, extra_json_schema=WHEN)] | None = msgspec.field(
        default=None, name="from"
    )
    """A day in UTC (2026-12-01) or an instant with a zone; null: as soon as all processes can know of it."""
    minimum_ms: Annotated[int, Meta(ge=0, le=LONGEST_MINIMUM_MS)] | None = None
    """Milliseconds of the device for which a start of a call is billed at least; null: as before."""


class PriceRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate of a price."""

    starts: str | None = msgspec.field(name="from")
    """The instant from which it holds, in UTC; null: since ever."""
    usd_per_hour: str
    minimum_ms: int | msgspec.UnsetType = msgspec.UNSET
    """For which a start of a call is billed at least; unset: for what it takes."""


class PriceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A price over time."""

    price: str
    of: str
    """What an hour of it is of: device, core or GiB; of units `million`, whenever. Of `spot`, what costs a dollar on
    demand, and of `tenant.NAME`, what costs others a dollar."""
    usd_per_hour: str
    """Now."""
    to_come: tuple[PriceRate, ...]
    """The changes of it, in their order."""
    past: tuple[PriceRate, ...]
    """The rates that have begun, the present one last."""
    minimum_ms: int | msgspec.UnsetType = msgspec.UNSET
    """Now; unset: none."""
    source: str
    """standard: the book's own; file: a gateway's price file; set: an operator's request."""


class PriceList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/prices`, by name: to tenants no other one's discount."""

    prices: tuple[PriceInfo, ...]
    currency: str = "USD"
