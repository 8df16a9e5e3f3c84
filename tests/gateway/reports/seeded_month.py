"""November 2026 of three tenants: what the pages show is made of it, to the last digit.

A price changes in its middle, from when on one of them has a discount; usage of October comes late, and a call that
began in October is taken off the bill when its container is lost in November.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.price_book import DatedRate, PriceBook, load_prices
from pilotlight_gateway.ledger.ledger_store import Ledger
from tests.gateway.ledger.metering import SECOND, delivered, tagged

SEED = 2026_11
BEGAN = datetime(2026, 11, 1, tzinfo=UTC).timestamp()
MADE = datetime(2026, 12, 8, 9, tzinfo=UTC).timestamp()
"""When reports are made: November is closed."""
DAY_S, DAYS = 86_400, 30
FIRST, UNTIL = "2026-11-01", "2026-12-01"
MINUTE = 60 * SECOND


@dataclass(frozen=True, kw_only=True)
class Work:
    """One function's month: how many calls a day, and on what."""

    tenant: str
    app: str
    function: str
    price: str
    ppm: int
    calls: int
    weekend: float
    """The part of its calls that weekends have."""
    purchase: str = "on-demand"
    keys: tuple[str, ...] = ("key_app",)
    memory: int = 0
    host: dict[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> str:
        return f"ver_{self.function}"


WORKS = (
    Work(tenant="acme", app="search", function="embed", price="h100", ppm=142_857, calls=9, weekend=0.3,
         keys=("key_web", "key_batch"), host={"core_ppm": 2_000_000, "gib_ppm": 8_000_000}),
    Work(tenant="acme", app="shop", function="rank", price="l4", ppm=1_000_000, calls=6, weekend=0.6),
    Work(tenant="birch", app="llm", function="chat", price="h100", ppm=1_000_000, calls=5, weekend=0.2,
         purchase="spot", host={"core_ppm": 8_000_000, "gib_ppm": 64_000_000}),
    Work(tenant="cedar", app="demo", function="hello", price="16xcpu", ppm=62_500, calls=3, weekend=1.0),
)  # fmt: skip
HOURS = (6, 9, 12, 15, 19)
"""Of a day, in which a container is started for calls."""


def book_of_month() -> PriceBook:
    """The standard prices; an L4 is cheaper from the middle of the month on, and all for cedar."""
    book = load_prices()
    middle = datetime(2026, 11, 16, tzinfo=UTC).timestamp()
    book.put(
        "l4", [DatedRate(nano_usd_per_hour=799_200_000), DatedRate(starts_at=middle, nano_usd_per_hour=720_000_000)]
    )
    book.put("tenant.cedar", [DatedRate(starts_at=middle, nano_usd_per_hour=875_000_000)])
    return book


def fold_month(url: str) -> Ledger:
    """A ledger of the month, whose days are closed as the platform closes them."""
    ledger = Ledger(url, book_of_month())
    before = list(_of_october())
    ledger.fold("USAGE", 1, delivered(before[:1], BEGAN))
    ledger.close_days(FIRST, BEGAN + 5 * DAY_S)
    ledger.fold("USAGE", 2, delivered(before[1:], BEGAN + 6 * DAY_S))
    for number, work in enumerate(WORKS):
        ledger.fold("USAGE", 3 + number, delivered(list(_month_of(work, number)), BEGAN + DAYS * DAY_S))
    ledger.fold("USAGE", 10, delivered(list(_unsold()), BEGAN + DAYS * DAY_S))
    ledger.fold("USAGE", 11, tagged({"ver_embed": {"team": "search"}, "ver_rank": {"team": "shop"}}))
    ledger.close_days(UNTIL, BEGAN + (DAYS + 5) * DAY_S)
    return ledger


def _of_october() -> Iterator[UsageEvent]:
    """A call runs into November, and is lost there; an hour of October comes after it is closed."""
    work = WORKS[0]
    running = (CallShare("call_lost", "acme", 10 * MINUTE, key="key_web"),)
    yield _event(work, "oct.0", BEGAN, 10 * MINUTE, LeaseState.BUSY, shares=running)
    lost = (CallShare("call_lost", "acme", MINUTE, "died", key="key_web", fault=Fault.PLATFORM, earlier=10 * MINUTE),)
    yield _event(work, "oct.1", BEGAN + 60, MINUTE, LeaseState.BUSY, shares=lost)
    yield _event(work, "oct.2", BEGAN - 40_000, 25 * MINUTE, LeaseState.IDLE)


def _month_of(work: Work, number: int) -> Iterator[UsageEvent]:
    chance = random.Random(SEED + number)
    for day in range(DAYS):
        part = work.weekend if (day + 6) % 7 in (5, 6) else 1.0  # the 1st of November 2026 is a Sunday
        for hour in HOURS:
            calls = round(work.calls * part * chance.uniform(0.5, 1.5))
            if calls:
                at = BEGAN + day * DAY_S + hour * 3_600 + chance.randrange(600)
                yield from _started(work, f"{number}.{day}.{hour}", at, calls, chance)


def _started(work: Work, name: str, at: float, calls: int, chance: random.Random) -> Iterator[UsageEvent]:
    """A container for some calls: it is made ready, loads, runs them, waits for more, and ends."""
    ran = [chance.randrange(20 * SECOND, 200 * SECOND) for _ in range(calls)]
    shares = tuple(
        CallShare(f"call_{name}.{place}".replace(".", "_"), work.tenant, ns, "ok", key=chance.choice(work.keys))
        for place, ns in enumerate(ran)
    )
    lengths = (
        (LeaseState.PROVISIONING, 3 * SECOND + chance.randrange(SECOND), ()),
        (LeaseState.LOADING, 20 * SECOND + chance.randrange(9 * SECOND), ()),
        (LeaseState.BUSY, sum(ran), shares),
        (LeaseState.IDLE, 60 * SECOND + chance.randrange(240 * SECOND), ()),
        (LeaseState.DRAINING, chance.randrange(SECOND), ()),
    )
    for place, (state, ns, of_calls) in enumerate(lengths):
        at += ns / SECOND
        yield _event(work, f"{name}.{place}", at, ns, state, shares=of_calls)


def _event(work: Work, name: str, ended_at: float, ns: int, state: LeaseState, **more: Any) -> UsageEvent:
    end = round(ended_at * SECOND)
    return UsageEvent(
        id=f"node.{work.function}.{name}", node="node-eu-1", device=f"{work.price}-{work.function}",
        slice=f"{work.price}-{work.function}.0", ppm=work.ppm, price=work.price, state=state, t0=0, t1=ns,
        ended_at=end / SECOND, wall_ns=end, tenant=work.tenant, app=work.app, function=work.function,
        version=work.version, container=f"ctr_{work.function}", purchase=work.purchase, region="eu", used=True,
        **work.host, **more,
    )  # fmt: skip


def _unsold() -> Iterator[UsageEvent]:
    """What nobody paid for: an L4 waits, and a part of an H100 is in no slice."""
    rest = (("l4", "l4-free", "", 1_000_000, 6), ("h100", "h100-embed", ".rest", 285_714, 20))
    for day in range(DAYS):
        for price, device, part, ppm, hours in rest:
            end = round((BEGAN + (day + 1) * DAY_S) * SECOND)
            yield UsageEvent(
                id=f"node.free.{price}.{day}", node="node-eu-1", device=device, slice=device + part, ppm=ppm,
                price=price, state=LeaseState.FREE, t0=0, t1=hours * 3_600 * SECOND, ended_at=end / SECOND, wall_ns=end,
                region="eu", purchase="on-demand",
            )  # fmt: skip
