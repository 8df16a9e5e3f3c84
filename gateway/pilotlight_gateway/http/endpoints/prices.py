"""The platform's prices, and changes of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.host.price_records import drop_changes, set_price
from pilotlight_core.model.api.price_api import MILLION, PriceInfo, PriceList, PriceRate, PriceRequest
from pilotlight_core.model.devices import CORE_PRICE, CPU_PRICE, MEMORY_PRICE
from pilotlight_core.model.errors import BadInput, NotFound
from pilotlight_core.model.price_book import (
    SPOT_PRICE,
    TENANT_PRICE,
    WITHOUT_MINIMUM,
    DatedRate,
    PriceBook,
    PriceRecord,
    dated_rate_at,
    price_terms,
)
from pilotlight_core.model.suggestions import did_you_mean, nearest
from pilotlight_core.model.units import NANO_USD, UNIT_PRICES
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.protocol.api_operations import BODY, Operation, json_answer, principal_of, read_struct
from pilotlight_gateway.tenancy.registry_port import RegistryPort

UNITS = {
    CPU_PRICE: "core", CORE_PRICE: "core", MEMORY_PRICE: "GiB", SPOT_PRICE: "dollar on demand",
    TENANT_PRICE: "dollar by the list", **dict.fromkeys(UNIT_PRICES, MILLION),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PriceServices:
    """The ports of these endpoints. `wall` is the clock, in unix seconds."""

    registry: RegistryPort
    book: PriceBook
    budget: ByteBudget
    wall: Callable[[], float] = time.time


async def list_prices(request: Request, services: PriceServices) -> Response:
    """`GET /v1/prices`."""
    principal = principal_of(request)
    sees_all, own = principal.operator, f"{TENANT_PRICE}.{principal.tenant}"
    records = {record.id: record for record in services.registry.prices()}
    known = {*services.book.configured, *records}
    names = sorted(name for name in known if sees_all or name == own or not name.startswith(f"{TENANT_PRICE}."))
    prices = tuple(_info(name, records.get(name), services) for name in names)
    return json_answer(PriceList(prices=prices, currency=services.book.currency))


async def put_price(request: Request, services: PriceServices) -> Response:
    """`PUT /v1/prices/{price}`."""
    asked = await read_struct(request, services.budget, PriceRequest)
    name = _known(request, services)
    starts_at = None if asked.starts is None else read_instant(asked.starts, "from")
    rate, product = int(Decimal(asked.usd_per_hour) * 10**9), name.partition(".")[0]
    if product == TENANT_PRICE and rate > NANO_USD:
        raise BadInput("usd_per_hour: a tenant pays at most 1 for each dollar of the list.", field="usd_per_hour")
    if asked.minimum_ms and product in WITHOUT_MINIMUM:
        raise BadInput(f"minimum_ms: {name} is no price of a device.", field="minimum_ms")
    record = await set_price(
        services.registry, services.book, name, rate, starts_at=starts_at, at=services.wall(),
        minimum_ms=asked.minimum_ms,
    )  # fmt: skip
    return json_answer(_info(name, record, services))


async def drop_price_changes(request: Request, services: PriceServices) -> Response:
    """`DELETE /v1/prices/{price}/changes`."""
    name = _known(request, services)
    record = await drop_changes(services.registry, name, at=services.wall())
    return json_answer(_info(name, record, services))


def read_instant(text: str, field: str) -> float:
    """Unix seconds of a day in UTC, or of an instant with a zone.

    Raises:
        BadInput: names `field`.
    """
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None and len(text) > len("2026-12-01"):
            raise ValueError(text)
        # Answers tell it in UTC, where its year may be one that no calendar here has.
        return (found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        expected = "a day (in UTC) such as 2026-12-01, or an instant with a zone such as 2026-12-01T08:00:00Z"
        raise BadInput(f"{field}: expected {expected}.", field=field) from None


def _known(request: Request, services: PriceServices) -> str:
    name: str = request.path_params["price"]
    known = {*services.book.configured, *services.book.dated, *UNIT_PRICES}
    terms = price_terms(name)
    product, _, tenant = name.partition(".")
    if product == TENANT_PRICE:
        if services.registry.tenant_nowait(tenant) is None:
            raise NotFound(f"There is no tenant {tenant[:63]!r}, whose prices could be set.")
        return name
    products = known - {*UNIT_PRICES}
    if name not in known and (terms is None or not terms.is_special or terms.product not in products):
        hint = did_you_mean(nearest(name, sorted(known)))
        raise NotFound(f"There is no price {name[:63]!r}.{hint}")
    return name


def _info(name: str, record: PriceRecord | None, services: PriceServices) -> PriceInfo:
    source = "standard" if record is None else "set" if record.is_set else "file"
    base = _base(name, services.book)
    rates = record.rates if record is not None else (DatedRate(nano_usd_per_hour=base),)
    at = services.wall()
    now = dated_rate_at(rates, at)
    told = [
        (
            rate.starts_at,
            PriceRate(
                starts=_instant(rate.starts_at),
                usd_per_hour=_dollars(rate.nano_usd_per_hour),
                minimum_ms=rate.minimum_ms or UNSET,
            ),
        )
        for rate in sorted(rates, key=lambda rate: rate.starts_at)
    ]
    return PriceInfo(
        price=name,
        of=UNITS.get(name.partition(".")[0], "device"),
        usd_per_hour=_dollars(base if now is None else now.nano_usd_per_hour),
        minimum_ms=(now.minimum_ms if now is not None else 0) or UNSET,
        to_come=tuple(rate for starts_at, rate in told if starts_at > at),
        past=tuple(rate for starts_at, rate in told if starts_at <= at),
        source=source,
    )


def _base(name: str, book: PriceBook) -> int:
    """What it costs by the book, or without a price of its own."""
    terms = price_terms(name)
    if name in book.configured or terms is None:
        return book.configured.get(name, 0)
    if terms.product == TENANT_PRICE:
        return NANO_USD
    return book.rate(terms.product, purchase=terms.purchase, region=terms.region, ppm=terms.most_ppm)


def _dollars(nano: int) -> str:
    return f"{Decimal(nano).scaleb(-9).normalize():f}"


def _instant(at: float) -> str | None:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z") if at else None


PRICES = (
    Operation(
        method="GET", path="/v1/prices", name="listPrices", about="What an hour costs, and from when on.",
        endpoint=list_prices, scopes=("read", "deploy", "operator"), answer=PriceList,
    ),
    Operation(
        method="PUT", path="/v1/prices/{price}", name="setPrice", endpoint=put_price, scopes=("operator",),
        tells=("*",),
        about="Change a price from an instant on. What ran before it keeps its price.",
        request=PriceRequest, answer=PriceInfo, errors=(*BODY, "not_found", "conflict"),
    ),
    Operation(
        method="DELETE", path="/v1/prices/{price}/changes", name="dropPriceChanges", endpoint=drop_price_changes,
        about="Take back the changes of a price that are to come.", scopes=("operator",), answer=PriceInfo,
        errors=("not_found", "conflict"),
    ),
)  # fmt: skip
