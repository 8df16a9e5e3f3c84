"""Computes the ledger's rows from usage events.

An interval is cut at each hour (UTC), and a busy one also among its calls, whose shares lie end to end over it. Both
cuts are exact in integer nanoseconds, in either order. Who pays is `attribution`'s to say. What is of a closed day is
booked on the first that is open.

At its end a start of a call may be charged for what is no time of a device (`CHARGES`): what it lacks of the least that
its product bills, and what it counted of units that have a price. These are rows of their own, on its receipt too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from pilotlight_core.model.devices import (
    CORE_PRICE,
    MEMORY_PRICE,
    MINIMUM_PRICE,
    cores_of,
)
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.messages.usage import CallShare, UsageEvent
from pilotlight_core.model.pipelines.pipeline import HookKind, hook_place, is_companion
from pilotlight_core.model.price_book import Charge, PriceBook, unit_charges
from pilotlight_core.model.units import NS_PER_S, sold_units
from pilotlight_gateway.ledger.attribution import (
    OPERATOR,
    POLICY,
    payer_of_line,
    payer_of_share,
    payer_of_start,
)

NS_PER_HOUR = 3_600 * NS_PER_S
NS_PER_DAY = 86_400 * NS_PER_S

UsageKey = tuple[str, str, str, str, str, str, str, int, int, int]
"""day, tenant, app, function, version, state, price, ppm, rate, discount"""
HourKey = tuple[str, str, str, str, str, str, str, int, int, int, str, str, str, str, int]
"""hour, and as `UsageKey`; then key, purpose, purchase, region, policy"""
CallRow = tuple[int, str, int, str, int, str, str, str]
"""What is added to one row of `call_receipt`, whose columns it has in their order."""
Part = tuple[str, int, int, int]
"""price, ppm, rate, discount: of the slice first, then what is paid of the host."""
NONE: Mapping[str, str] = {}
NO_UNITS: Mapping[str, int] = {}
UNSOLD: Mapping[str, Mapping[str, int]] = {}
LONGEST_START_US = 86_400 * 10**6
"""A node may say anything."""
LONGEST_NS = 31 * NS_PER_DAY
"""Agents write an interval each second, so a longer one is an error."""


@dataclass(slots=True)
class UsageSum:
    """What is added to one row of `usage_hour` and one of `usage_day`."""

    ns: int = 0
    calls: int = 0


class ReceiptTerms(NamedTuple):
    """What the calls of an interval have in common, if one tenant asked for them with one key: see `receipt_terms`."""

    tenant: str
    day: str
    app: str
    function: str
    version: str
    price: str
    ppm: int
    rate: int
    core_ppm: int
    core_rate: int
    gib_ppm: int
    gib_rate: int
    key_id: str
    tags: str
    memory: int
    discount: int
    of_day: str = ""
    """The day of what is booked late, on `day`; "": it is that."""

    @property
    def id(self) -> int:
        """63 bits of their digest: whoever writes them, they have one row, and nobody has to ask for its number."""
        said = self if self.of_day else self[:-1]  # as before there was such a day
        return int.from_bytes(blake2b(msgspec.msgpack.encode(said), digest_size=8).digest()) >> 1


class Reversal(NamedTuple):
    """What a start of a call was billed in earlier intervals, and turns out not to be its tenant's."""

    event: UsageEvent
    share: CallShare
    hour: str
    """Of its end."""
    lines: int = 0
    """How many lines have corrected a part of it."""
    rest: int = 0
    """Nanoseconds beyond `share.earlier` that are not folded yet."""


class ColdStart(NamedTuple):
    """The start of a container for which a call waited."""

    tenant: str
    call_id: str
    event: str
    day: str
    us: int
    billed: bool
    """Whether the caller pays for the load of its own code."""


class NestedLine(NamedTuple):
    """A call that another one has made."""

    tenant: str
    call_id: str
    parent: str
    day: str


@dataclass(slots=True)
class _CallGroup:
    """The calls of an interval that have their terms in common."""

    terms: int
    ns: int = 0
    ended: int = 0


@dataclass(kw_only=True)
class LedgerRows:
    """The rows of some events."""

    leases: list[dict[str, Any]] = field(default_factory=list)
    hours: dict[HourKey, UsageSum] = field(default_factory=dict)
    terms: dict[ReceiptTerms, int] = field(default_factory=dict)
    """With their ids."""
    calls: list[CallRow] = field(default_factory=list)
    """Of a call as many as it has shares: the ledger adds them up."""
    reversals: list[Reversal] = field(default_factory=list)
    cold_starts: list[ColdStart] = field(default_factory=list)
    nested: list[NestedLine] = field(default_factory=list)
    unpriced: int = 0
    """Events whose price id is unknown; they cost what an unknown GPU does."""

    @property
    def usage(self) -> dict[UsageKey, UsageSum]:
        """Of `hours`, by day."""
        days: dict[UsageKey, UsageSum] = {}
        for (hour, tenant, app, function, version, state, price, ppm, rate, off, *_), found in self.hours.items():
            key = hour[:10], tenant, app, function, version, state, price, ppm, rate, off
            line = days.setdefault(key, UsageSum())
            line.ns += found.ns
            line.calls += found.calls
        return days


def ended_ns(event: UsageEvent) -> int:
    """The unix nanosecond at which an interval ended."""
    return event.wall_ns or int(event.ended_at * NS_PER_S)


def as_json(facts: Mapping[str, str | int]) -> str:
    return msgspec.json.encode(facts, order="sorted").decode()


def day_of(wall_ns: int) -> str:
    """The UTC day, such as `2026-11-20`, of unix nanoseconds."""
    return datetime.fromtimestamp(wall_ns // NS_PER_S, UTC).strftime("%Y-%m-%d")


@lru_cache(1_024)
def _hour_name(hour: int) -> str:
    return datetime.fromtimestamp(hour * 3_600, UTC).strftime("%Y-%m-%dT%H")


def cut_at_hours(end: int, ns: int) -> list[tuple[str, int]]:
    """The UTC hours (`2026-11-20T14`) of the `ns` nanoseconds up to the unix nanosecond `end`, each with its part."""
    at, parts = end - ns, []
    while True:
        hour = at // NS_PER_HOUR
        upto = min((hour + 1) * NS_PER_HOUR, end)
        parts.append((_hour_name(hour), upto - at))
        if upto == end:
            return parts
        at = upto


def booked(hours: list[tuple[str, int]], open_from: str) -> list[tuple[str, int]]:
    """The same, with the first open day in place of hours of days that are closed."""
    return [(max(hour, open_from), ns) for hour, ns in hours] if hours[0][0] < open_from else hours


def lay_out(hours: list[tuple[str, int]], shares: Sequence[CallShare]) -> list[tuple[str, Sequence[CallShare]]]:
    """The shares of each hour, where they lie end to end over `hours`.

    Sums stay exact, and a call ends in its last part.
    """
    if len(hours) == 1:  # the common case
        return [(hours[0][0], shares)]
    parts: list[tuple[str, list[CallShare]]] = [(hour, []) for hour, _ in hours]
    index, left = 0, hours[0][1]
    for share in shares:
        rest = share
        while rest.ns > left:
            if left:
                parts[index][1].append(msgspec.structs.replace(rest, ns=left, ended="", units={}, earlier=0))
            rest = msgspec.structs.replace(rest, ns=rest.ns - left)
            index += 1
            left = hours[index][1]
        parts[index][1].append(rest)
        left -= rest.ns
    return [(hour, of_hour) for hour, of_hour in parts]


def entries_of(
    events: Iterable[UsageEvent],
    book: PriceBook,
    open_from: str = "",
    firsts: Mapping[str, str] = NONE,
    most: Mapping[str, Mapping[str, int]] = UNSOLD,
) -> LedgerRows:
    """The rows of events that the ledger does not have yet and that can be (`usage_checks.fault_of`).

    Args:
        events: the events.
        book: the prices; those of an event's own time hold.
        open_from: the first day that is not closed.
        firsts: of containers on several devices the first, on which their calls are counted.
        most: of containers what a call is billed for at most of each unit; of other units it is billed nothing.
    """
    entries = LedgerRows()
    for event in events:
        end = ended_ns(event)
        at = end / NS_PER_S
        parts, least = _parts_of(event, book, at)
        entries.unpriced += not book.knows(event.price)
        hours = cut_at_hours(end, event.t1 - event.t0)
        is_late = hours[0][0] < open_from
        payer = payer_of_line(event)
        of_payer = _discounted(parts, book, payer, at)
        entries.leases.append(_lease_row(event, of_payer, payer, hours[-1][0][:10], open_from if is_late else ""))
        of_days = [hour[:10] if hour < open_from else "" for hour, _ in hours] if is_late else [""] * len(hours)
        if is_late:
            hours = booked(hours, open_from)
        if event.shares:
            counts = firsts.get(event.container, event.slice) == event.slice
            tenants = {share.tenant for share in event.shares}
            by_tenant = {tenant: _discounted(parts, book, tenant, at) for tenant in tenants}
            _add_shares(entries, event, by_tenant, hours, of_days, counts=counts)
            sold = most.get(event.container, NO_UNITS) if counts and book.sells_units else NO_UNITS
            if least or sold:
                charges = _charges_of(event, book, at, parts[0][2], least, sold)
                _add_charges(entries, event, by_tenant, hours[-1][0], of_days[-1], charges)
            if counts:
                entries.cold_starts += _cold_starts(event, hours[-1][0][:10])
                entries.nested += _nested_lines(event, hours[-1][0][:10])
        else:
            _add_whole(entries, event, of_payer, hours, payer)
    return entries


def _parts_of(event: UsageEvent, book: PriceBook, at: float) -> tuple[list[Part], int]:
    """What is paid for an interval by the list, and the nanoseconds that a start in it is billed at least.

    What of the host costs nothing is left out.
    """
    purchase, region = event.purchase, event.region
    rate, least = book.rate_and_least(event.price, at, purchase=purchase, region=region, ppm=event.ppm)
    parts = [(event.price, event.ppm, rate, 0)]
    for price, ppm in ((CORE_PRICE, event.core_ppm), (MEMORY_PRICE, event.gib_ppm)):
        if ppm and (rate := book.rate(price, at, purchase=purchase, region=region)):
            parts.append((price, ppm, rate, 0))
    return parts, least


def rates_at(event: UsageEvent, book: PriceBook, payer: str, at: float) -> tuple[int, ...]:
    """What an interval would cost at a unix second: rate, discount, then ppm and rate of cores and of memory."""
    (_, _, rate, off), *of_host = _discounted(_parts_of(event, book, at)[0], book, payer, at)
    return (rate, off, *_of_host(of_host))


def _discounted(parts: list[Part], book: PriceBook, payer: str, at: float) -> list[Part]:
    """The same for who pays: the operator ("") has no discount."""
    if not payer or not (off := book.discount(payer, at)):
        return parts
    return [(price, ppm, rate, off) for price, ppm, rate, _ in parts]


def _charges_of(
    event: UsageEvent, book: PriceBook, at: float, rate: int, least: int, most: Mapping[str, int]
) -> Iterator[tuple[CallShare, Charge]]:
    """What the starts that end in an interval are charged beside their time, by those who pay for them."""
    for share in event.shares:
        if not share.ended or payer_of_share(share) != share.tenant:
            continue
        if not share.resumed and (lack := least - share.earlier - share.ns) > 0:
            yield share, Charge(MINIMUM_PRICE, event.ppm, rate, lack)
        if most and share.units and share.ended == Outcome.OK:
            for charge in unit_charges(sold_units(share.units, most), book, at):
                yield share, charge


def _add_charges(
    entries: LedgerRows,
    event: UsageEvent,
    by_tenant: Mapping[str, list[Part]],
    hour: str,
    of_day: str,
    charges: Iterable[tuple[CallShare, Charge]],
) -> None:
    for share, (price, ppm, rate, amount) in charges:
        part = price, ppm, rate, by_tenant[share.tenant][0][3]
        terms = _terms_of(event, [part], hour[:10], of_day, share)._replace(memory=0)
        number = entries.terms.setdefault(terms, terms.id)
        entries.calls.append((number, share.call_id, amount, "", 1, "", "", ""))
        hour_sum(entries, event, part, hour, share.tenant, share.key).ns += amount


def _lease_row(event: UsageEvent, parts: list[Part], payer: str, day: str, booked_from: str) -> dict[str, Any]:
    _, core_rate, _, gib_rate = _of_host(parts[1:])
    is_of_container = bool(event.container and event.wall_ns)  # older agents say nothing of containers
    return {
        "id": event.id, "node": event.node, "device": event.device, "slice": event.slice, "ppm": event.ppm,
        "price": event.price, "rate": parts[0][2], "state": event.state.value, "tenant": payer,
        "app": event.app, "function": event.function, "version": event.version, "container": event.container,
        "t0": event.t0, "t1": event.t1, "ns": event.t1 - event.t0, "wall": event.ended_at, "day": day,
        "wall_ns": ended_ns(event), "purpose": event.purpose.value if is_of_container else "",
        "used": event.used if is_of_container else None, "memory": event.memory, "region": event.region,
        "zone": event.zone, "purchase": event.purchase, "core_ppm": event.core_ppm, "core_rate": core_rate,
        "gib_ppm": event.gib_ppm, "gib_rate": gib_rate, "holder": event.tenant, "policy": POLICY,
        "booked_from": booked_from, "discount": parts[0][3],
    }  # fmt: skip


def hour_sum(entries: LedgerRows, event: UsageEvent, part: Part, hour: str, payer: str, key: str = "") -> UsageSum:
    """The sum to which a part of an interval in an hour belongs."""
    purpose = event.purpose.value if event.container and event.wall_ns else ""
    which = (
        hour, payer, event.app, event.function, event.version, event.state.value, *part,
        key, purpose, event.purchase, event.region, POLICY,
    )  # fmt: skip
    return entries.hours.setdefault(which, UsageSum())


def _add_whole(
    entries: LedgerRows, event: UsageEvent, parts: list[Part], hours: list[tuple[str, int]], payer: str
) -> None:
    for hour, ns in hours:
        for part in parts:
            hour_sum(entries, event, part, hour, payer).ns += ns


def _add_shares(
    entries: LedgerRows,
    event: UsageEvent,
    by_tenant: Mapping[str, list[Part]],
    hours: list[tuple[str, int]],
    of_days: list[str],
    *,
    counts: bool,
) -> None:
    """Add a row for each call, and what they have in common once: this is where a fold's time goes."""
    says_fault, add = bool(event.wall_ns), entries.calls.append
    stage = hook_place(event.function)[1] if is_companion(event.function) else ""
    for (hour, shares), of_day in zip(lay_out(hours, event.shares), of_days, strict=True):
        groups: dict[tuple[str, str], _CallGroup] = {}
        for share in shares:
            payer = payer_of_share(share)
            if payer != share.tenant:
                _add_spared(entries, event, by_tenant[share.tenant], hour, of_day, share)
                continue
            group = groups.get((payer, share.key))
            if group is None:
                terms = _terms_of(event, by_tenant[payer], hour[:10], of_day, share)
                group = _CallGroup(entries.terms.setdefault(terms, terms.id))
                groups[payer, share.key] = group
            ns, ended = share.ns, share.ended
            group.ns += ns
            tags = _call_tags(event, share) if share.tags else ""
            if ended:
                group.ended += counts and not share.moved and (not stage or ends_call(stage, ended))
                fault, units = str(share.fault) if says_fault else "", as_json(share.units) if share.units else ""
                add((group.terms, share.call_id, ns, ended, share.batch_size, fault, units, tags))
            else:
                add((group.terms, share.call_id, ns, "", share.batch_size, "", "", tags))
        for (payer, key), group in groups.items():
            for part in by_tenant[payer]:
                hour_sum(entries, event, part, hour, payer, key).ns += group.ns
            hour_sum(entries, event, by_tenant[payer][0], hour, payer, key).calls += group.ended


def ends_call(stage: str, outcome: str) -> bool:
    """Whether the call of a class counts at the end of a hook: else it does at that of its method."""
    return stage == HookKind.PREPROCESS and outcome != Outcome.OK


def _cold_starts(event: UsageEvent, day: str) -> Iterator[ColdStart]:
    for share in event.shares:
        if share.cold_us > 0 and share.ended:
            billed = payer_of_start(event) == share.tenant
            yield ColdStart(share.tenant, share.call_id, event.id, day, min(share.cold_us, LONGEST_START_US), billed)


def _nested_lines(event: UsageEvent, day: str) -> Iterator[NestedLine]:
    for share in event.shares:
        if share.parent and share.ended:
            yield NestedLine(share.tenant, share.call_id, share.parent, day)


def _add_spared(
    entries: LedgerRows, event: UsageEvent, parts: list[Part], hour: str, of_day: str, share: CallShare
) -> None:
    """Add a part of a call that the operator pays for. Its tenant's receipt says how it ended, and bills nothing."""
    told = _terms_of(event, parts, hour[:10], of_day, share)
    paid = told._replace(tenant=OPERATOR, key_id="", tags="", discount=0)
    for terms, ns in ((told, 0), (paid, share.ns)):
        number = entries.terms.setdefault(terms, terms.id)
        fault = str(share.fault) if share.ended else ""
        entries.calls.append((number, share.call_id, ns, share.ended, share.batch_size, fault, "", ""))
    for price, ppm, rate, _ in parts:
        hour_sum(entries, event, (price, ppm, rate, 0), hour, OPERATOR).ns += share.ns
    if share.earlier and not share.shadow:  # of a shadow nothing was billed
        entries.reversals.append(Reversal(event, share, hour))


def _terms_of(event: UsageEvent, parts: list[Part], day: str, of_day: str, share: CallShare) -> ReceiptTerms:
    (price, ppm, rate, off), *of_host = parts
    core_ppm, core_rate, gib_ppm, gib_rate = _of_host(of_host)
    return ReceiptTerms(
        tenant=share.tenant, day=day, app=event.app, function=event.function, version=event.version, price=price,
        ppm=ppm, rate=rate, core_ppm=core_ppm, core_rate=core_rate, gib_ppm=gib_ppm, gib_rate=gib_rate,
        key_id=share.key, tags=as_json(event.tags) if event.tags and share.tenant == event.tenant else "",
        memory=0 if cores_of(event.price) else event.memory, discount=off, of_day=of_day,
    )  # fmt: skip


def _of_host(parts: list[Part]) -> tuple[int, int, int, int]:
    """ppm and rate of cores, then of memory; 0: nothing is paid for them."""
    paid = {price: (ppm, rate) for price, ppm, rate, _ in parts}
    return (*paid.get(CORE_PRICE, (0, 0)), *paid.get(MEMORY_PRICE, (0, 0)))


def _call_tags(event: UsageEvent, share: CallShare) -> str:
    """The call's own and its function's; these are its owner's alone, and not shown to others that call it."""
    return as_json(event.tags | share.tags if share.tenant == event.tenant else share.tags)
