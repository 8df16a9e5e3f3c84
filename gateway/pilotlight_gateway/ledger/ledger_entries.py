"""Computes the ledger's rows from usage events.

An interval is cut at midnight (UTC) and a busy one also among its calls, whose shares lie end to end over it. Both cuts
are exact in integer nanoseconds, in either order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from pilotlight_core.model.devices import CORE_PRICE, MEMORY_PRICE
from pilotlight_core.model.messages.usage import CallShare, UsageEvent
from pilotlight_core.model.price_book import PriceBook
from pilotlight_core.model.units import NS_PER_S

NS_PER_DAY = 86_400 * NS_PER_S

UsageKey = tuple[str, str, str, str, str, str, str, int, int]
"""day, tenant, app, function, version, state, price, ppm, rate"""
CallKey = tuple[str, str, str, str, str, int, int]
"""tenant, call, day, version, price, ppm, rate"""
Part = tuple[str, int, int]
"""price, ppm, rate: of the slice first, then what is paid of the host."""
LONGEST_NS = 31 * NS_PER_DAY
"""Agents write an interval each second, so a longer one is an error."""


@dataclass(slots=True)
class UsageSum:
    """What is added to one row of `usage_day`."""

    ns: int = 0
    calls: int = 0


@dataclass(slots=True, kw_only=True)
class CallSum:
    """What is added to one row of `call_line`."""

    app: str
    function: str
    ns: int = 0
    outcome: str = ""
    batch_size: int = 1
    key_id: str = ""
    tags: str = ""
    """A JSON object; "": there are none."""
    fault: str = ""
    """"": it has not ended."""
    units: str = ""
    """A JSON object; "": none were counted."""


@dataclass(kw_only=True)
class LedgerRows:
    """The rows of some events."""

    leases: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[UsageKey, UsageSum] = field(default_factory=dict)
    calls: dict[CallKey, CallSum] = field(default_factory=dict)
    unpriced: int = 0
    """Events whose price id is unknown; their rate is 0."""


def ended_ns(event: UsageEvent) -> int:
    """The unix nanosecond at which an interval ended."""
    return event.wall_ns or int(event.ended_at * NS_PER_S)


def as_json(facts: Mapping[str, str | int]) -> str:
    return msgspec.json.encode(facts, order="sorted").decode()


def day_of(wall_ns: int) -> str:
    """The UTC day, such as `2026-11-20`, of unix nanoseconds."""
    return datetime.fromtimestamp(wall_ns // NS_PER_S, UTC).strftime("%Y-%m-%d")


def cut_at_midnights(end: int, ns: int) -> list[tuple[str, int]]:
    """The UTC days of the `ns` nanoseconds up to the unix nanosecond `end`, each with its part."""
    at, parts = end - ns, []
    while True:
        midnight = (at // NS_PER_DAY + 1) * NS_PER_DAY
        upto = min(midnight, end)
        parts.append((day_of(at), upto - at))
        if upto == end:
            return parts
        at = upto


def lay_out(days: list[tuple[str, int]], shares: Iterable[int]) -> Iterator[list[tuple[str, int]]]:
    """The parts by day of each share, where shares lie end to end over `days`; sums stay exact."""
    index, left = 0, days[0][1]
    for share in shares:
        parts = []
        while True:
            taken = min(share, left)
            parts.append((days[index][0], taken))
            share, left = share - taken, left - taken
            if not share:
                break
            index += 1
            left = days[index][1]
        yield parts


def entries_of(events: Iterable[UsageEvent], book: PriceBook) -> LedgerRows:
    """The rows of events that the ledger does not have yet and that can be (`usage_checks.fault_of`)."""
    entries = LedgerRows()
    for event in events:
        end = ended_ns(event)
        parts = _parts_of(event, book, end / NS_PER_S)
        entries.unpriced += not book.knows(event.price)
        days = cut_at_midnights(end, event.t1 - event.t0)
        entries.leases.append(_lease_row(event, parts, days[-1][0]))
        if event.shares:
            _add_shares(entries, event, parts, days)
        else:
            _add_whole(entries, event, parts, days)
    return entries


def _parts_of(event: UsageEvent, book: PriceBook, at: float) -> list[Part]:
    """What is paid for an interval; what of the host costs nothing is left out."""
    parts = [(event.price, event.ppm, book.rate(event.price, at))]
    for price, ppm in ((CORE_PRICE, event.core_ppm), (MEMORY_PRICE, event.gib_ppm)):
        if ppm and (rate := book.rate(price, at)):
            parts.append((price, ppm, rate))
    return parts


def _lease_row(event: UsageEvent, parts: list[Part], day: str) -> dict[str, Any]:
    rates = {price: rate for price, _, rate in parts}
    is_of_container = bool(event.container and event.wall_ns)  # older agents say nothing of containers
    return {
        "id": event.id, "node": event.node, "device": event.device, "slice": event.slice, "ppm": event.ppm,
        "price": event.price, "rate": parts[0][2], "state": event.state.value, "tenant": event.tenant, "app": event.app,
        "function": event.function, "version": event.version, "container": event.container, "t0": event.t0,
        "t1": event.t1, "ns": event.t1 - event.t0, "wall": event.ended_at, "day": day, "wall_ns": ended_ns(event),
        "purpose": event.purpose.value if is_of_container else "", "used": event.used if is_of_container else None,
        "memory": event.memory, "region": event.region, "zone": event.zone, "purchase": event.purchase,
        "core_ppm": event.core_ppm, "core_rate": rates.get(CORE_PRICE, 0),
        "gib_ppm": event.gib_ppm, "gib_rate": rates.get(MEMORY_PRICE, 0),
    }  # fmt: skip


def _usage(entries: LedgerRows, event: UsageEvent, part: Part, day: str, tenant: str) -> UsageSum:
    key = (day, tenant, event.app, event.function, event.version, event.state.value, *part)
    return entries.usage.setdefault(key, UsageSum())


def _call_tags(event: UsageEvent, share: CallShare) -> str:
    """The call's own and its function's; these are its owner's alone, and not shown to others that call it."""
    return as_json(event.tags | share.tags if share.tenant == event.tenant else share.tags)


def _add_whole(entries: LedgerRows, event: UsageEvent, parts: list[Part], days: list[tuple[str, int]]) -> None:
    for day, ns in days:
        for part in parts:
            _usage(entries, event, part, day, event.tenant).ns += ns


def _add_shares(entries: LedgerRows, event: UsageEvent, parts: list[Part], days: list[tuple[str, int]]) -> None:
    if len(days) == 1:  # the common case
        laid_out: Iterable[list[tuple[str, int]]] = ([(days[0][0], share.ns)] for share in event.shares)
    else:
        laid_out = lay_out(days, (share.ns for share in event.shares))
    of_slice, *of_host = parts
    for share, by_day in zip(event.shares, laid_out, strict=True):
        for day, ns in by_day:
            for part in of_host:
                _add_call(entries, event, share, part, day, ns)
            line = _add_call(entries, event, share, of_slice, day, ns)
        if share.ended:
            line.outcome, line.fault = share.ended, share.fault.value if event.wall_ns else ""
            if share.units:
                line.units = as_json(share.units)
            _usage(entries, event, of_slice, day, share.tenant).calls += 1


def _add_call(entries: LedgerRows, event: UsageEvent, share: CallShare, part: Part, day: str, ns: int) -> CallSum:
    _usage(entries, event, part, day, share.tenant).ns += ns
    key = (share.tenant, share.call_id, day, event.version, *part)
    line = entries.calls.setdefault(key, CallSum(app=event.app, function=event.function))
    line.ns += ns
    line.batch_size = max(line.batch_size, share.batch_size)
    line.key_id = share.key
    if share.tags or (event.tags and share.tenant == event.tenant):
        line.tags = _call_tags(event, share)
    return line
