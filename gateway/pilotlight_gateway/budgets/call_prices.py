"""What a call may cost at worst, what calls like it cost, and what it did cost. Nano-dollars, rounded up."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import gcd
from typing import Final, NamedTuple

from msgspec import UNSET

from pilotlight_core.model.devices import (
    CORE_PRICE,
    CPU_PRICE,
    MEMORY_PRICE,
    PRICED_GPUS,
    UNKNOWN_PRICE,
    cores_of,
    gpu_price,
)
from pilotlight_core.model.messages.call_messages import Spent, lack_ns
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_core.model.price_book import PURCHASES, TENANT_PRICE, PriceBook, is_of_tenant, unit_charges
from pilotlight_core.model.spec import UNNAMED_CPU_MILLIS, FunctionSpec, VersionRecord, max_units_of
from pilotlight_core.model.units import NANO_USD, NS_PER_HOUR, NS_PER_S, WHOLE_DEVICE
from pilotlight_gateway.budgets.call_money import CallMoney

SCALE = WHOLE_DEVICE * NS_PER_HOUR * NANO_USD
NOTHING: Mapping[str, int] = {}
GIB = 2**30
MILLION = 10**6
LOST_STARTS = 2
"""Starts of an idempotent call that may be repeated after a loss."""
FLEET_KEPT_S = 5.0
"""Seconds between two looks at what the fleet has."""
CLOCKS_DIFFER_S = 5.0
"""A node's clock may be so much ahead."""
KNOWN_AT_MOST = 10_000
LEARNT_FROM = 200
"""Calls of a version that the next one's likely cost is learnt from, the last ones."""
ENOUGH = 20
"""Calls before which the worst case is taken for likely."""
QUANTILE = 0.99

LISTED_PARTS: Final = NS_PER_HOUR
"""Of a nano-dollar, in which amounts by the list are."""
PAID_PARTS: Final = NS_PER_HOUR * NANO_USD
"""The same, less a discount."""

Payer = tuple[str, str, str]
"""A tenant, its function and key."""
NOBODY: Final[Payer] = ("", "", "")
SpentKind = tuple[str, str, int, int, int, int]
"""Of starts that pay alike: their price, purchase, parts of a device, of a core and of a GiB, and the discount."""
FleetPart = tuple[str, int]
"""The price of a device, and the millionths of it that one container may get."""


class WorstTerms(NamedTuple):
    """What the worst case of a version's calls is reckoned from, by the list."""

    rate: int
    """Nano-dollars per hour of the dearest container."""
    least: int
    """The longest least of a start, in nanoseconds."""
    units: int
    """What the units of one call cost at most, in parts (1/`NS_PER_HOUR`) of a nano-dollar."""


class SpentWeight(NamedTuple):
    """What a nanosecond of such starts costs, with all that they pay for."""

    listed: int
    """By the list, in nano-dollars an hour times millionths."""
    least: int
    """Nanoseconds that a start is billed at least."""
    rate: int
    """Of the device."""
    paid: int
    """The same as `listed`, less the discount, in parts (1/`scale`) of a nano-dollar: the lowest terms, since whole
    numbers of one machine word are several times as fast."""
    scale: int


class RoundedRest:
    """What the calls of a payer cost less what was counted, in parts (1/`scale`) of a nano-dollar; never above 0.

    `scale` is that of its starts, as long as all pay alike, then `SCALE`.
    """

    __slots__ = ("parts", "scale")

    def __init__(self) -> None:
        self.parts = 0
        self.scale = SCALE


class DearestTerms:
    """The terms of a version for a tenant, with its discount; and what was reckoned from them last."""

    __slots__ = ("least", "longest_s", "ns", "off", "rate", "starts", "units", "worst")

    def __init__(self, rate: int, least: int, units: int, off: int, spec: FunctionSpec) -> None:
        self.rate = rate
        self.least = least
        self.units = units
        self.off = off
        self.starts = starts_of(spec)
        self.longest_s = self.starts * spec.timeout
        """A live call runs no longer, with all its starts."""
        self.ns = -1
        """The time of which `worst` is, with units: most calls of a version have the same."""
        self.worst = 0

    def worst_of(self, ns: int, *, with_units: bool) -> int:
        """Nano-dollars of so much time in all."""
        if with_units and ns == self.ns:
            return self.worst
        billed = ns
        if self.least:  # one start may take nearly all of it, and each other one is billed the least
            billed = max(ns, self.least) + (self.starts - 1) * self.least
        listed = self.rate * billed + (self.units if with_units else 0)
        off = self.off
        worst = -(-listed * (NANO_USD - off) // PAID_PARTS) if off else -(-listed // LISTED_PARTS)
        if with_units:
            self.ns, self.worst = ns, worst
        return worst


class CallPrices:
    """The prices of one gateway's calls.

    `parts`: of the fleet, as it is known here; `clock`: monotonic seconds; `wall`: unix seconds.
    """

    def __init__(
        self,
        book: PriceBook,
        parts: Callable[[], Iterable[FleetPart]] = tuple,
        clock: Callable[[], float] = lambda: 0.0,
        wall: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._book = book
        self._parts = parts
        self._clock = clock
        self._wall = wall
        self._look_at = float("-inf")
        """When the fleet is looked at again."""
        self._fleet: tuple[FleetPart, ...] = ()
        self._revision = -1
        """Of the book, by which all below is known."""
        self._known: dict[tuple[str, float | None], WorstTerms] = {}
        """By version, of now and of the instants at which prices change."""
        self._dated = -1
        """The revision of what the book has dated."""
        self._changes: list[tuple[float, str]] = []
        """Of prices, in their order: those that were to come then."""
        self._instants: list[float] = []
        """Theirs."""
        self._present: dict[tuple[str, str], DearestTerms] = {}
        """Of now, by version and tenant."""
        self._changing: dict[tuple[str, str, int, int], DearestTerms] = {}
        """The dearest, by version, tenant, and the changes until then."""
        self._weights: dict[SpentKind, SpentWeight] = {}
        self._weighed = -1
        """The revision of the book by which."""
        self._rounded: dict[Payer, RoundedRest] = {}
        self._costs: dict[str, deque[int]] = {}
        self._learnt = 0
        self._likely: dict[str, int] = {}

    def longest_s(self, version: VersionRecord, seconds: float) -> float:
        """The seconds that a live call can run which has `seconds` in all, with all its starts."""
        spec = version.spec
        return seconds if seconds <= spec.timeout else min(seconds, starts_of(spec) * spec.timeout)

    def money_of(
        self,
        version: VersionRecord,
        payer: Payer,
        seconds: float,
        *,
        within_s: float | None = None,
        with_units: bool = True,
    ) -> CallMoney:
        """What a call asks for, as `worst_of`."""
        tenant, function, key = payer
        worst = self.worst_of(version, seconds, tenant, within_s=within_s, with_units=with_units)
        return CallMoney(tenant, function, key, worst, self.likely(version.id, worst), seconds)

    def money_of_call(self, version: VersionRecord, payer: Payer, within_s: float) -> CallMoney:
        """What a live call asks for that is over in so many seconds, with all its starts: as `money_of`, at once."""
        book = self._book
        if self._clock() >= self._look_at or book.revision != self._revision or book.dated_revision != self._dated:
            self._refresh()
        tenant, function, key = payer
        terms = None if self._changes else self._present.get((version.id, tenant))
        if terms is None:
            terms = self._dearest(version, tenant, within_s)
        seconds = min(within_s, terms.longest_s)
        ns = int(seconds * NS_PER_S + 0.5)
        worst = terms.worst if ns == terms.ns else terms.worst_of(ns, with_units=True)
        return CallMoney(
            tenant, function, key, worst, self.likely(version.id, worst) if self._likely else worst, seconds
        )

    def worst_of(
        self,
        version: VersionRecord,
        seconds: float,
        tenant: str = "",
        *,
        within_s: float | None = None,
        with_units: bool = True,
    ) -> int:
        """Of so many seconds in the dearest container of a version, for a tenant with its discount.

        Args:
            version: of the call.
            seconds: that it has, with all its starts.
            tenant: who asks for it.
            within_s: in so many seconds from now it is over, by default in `seconds`: of prices, leasts and discounts
                that are known to change until then the dearest counts.
            with_units: with as many units that have a price as a call is billed for at most, in its last start.
        """
        self._refresh()
        terms = None if self._changes else self._present.get((version.id, tenant))
        if terms is None:
            terms = self._dearest(version, tenant, seconds if within_s is None else within_s)
        return terms.worst_of(int(seconds * NS_PER_S + 0.5), with_units=with_units)

    def covers(self, reserved: VersionRecord, other: VersionRecord, seconds: float, tenant: str) -> bool:
        """Whether what was reserved for a tenant's call that has so many seconds is enough for another version too.

        Also where it was reserved in steps, each of some of its time.
        """
        before, after = (
            self.worst_of(version, self.longest_s(version, seconds), tenant, within_s=seconds)
            for version in (reserved, other)
        )
        return after <= before and self.rate(other) <= self.rate(reserved)

    def _dearest(self, version: VersionRecord, tenant: str, seconds: float) -> DearestTerms:
        """The terms of a version, and a tenant's discount: the dearest each that hold in the next seconds."""
        if self._changes:
            at = self._wall()
            until = at + seconds + CLOCKS_DIFFER_S
            begun, last = bisect_right(self._instants, at), bisect_right(self._instants, until)
            if begun < last:
                return self._dearest_of_changes(version, tenant, begun, last)
        which = version.id, tenant
        found = self._present.get(which)
        if found is None:
            if len(self._present) >= KNOWN_AT_MOST:
                self._present.clear()
            rate, least, units = self._terms(version)
            off = self._book.discount(tenant)
            found = self._present[which] = DearestTerms(rate, least, units, off, version.spec)
        return found

    def _dearest_of_changes(self, version: VersionRecord, tenant: str, begun: int, last: int) -> DearestTerms:
        """Of now and after each of the changes from one to before another."""
        which = version.id, tenant, begun, last
        found = self._changing.get(which)
        if found is None:
            own, book = f"{TENANT_PRICE}.{tenant}", self._book
            coming = [starts for starts, price in self._changes[begun:last] if price == own or not is_of_tenant(price)]
            each = [self._terms(version), *(self._terms(version, starts) for starts in coming)]
            off = min(book.discount(tenant), *(book.discount(tenant, starts) for starts in coming), NANO_USD)
            if len(self._changing) >= KNOWN_AT_MOST:
                self._changing.clear()
            rate, least, units = (max(kind) for kind in zip(*each, strict=True))
            found = self._changing[which] = DearestTerms(rate, least, units, off, version.spec)
        return found

    def rate(self, version: VersionRecord) -> int:
        """Nano-dollars per hour of the dearest container of a version, by the list."""
        self._refresh()
        return self._terms(version).rate

    def _refresh(self) -> None:
        """Forget what was reckoned by other prices, or for another fleet."""
        book = self._book
        if self._clock() < self._look_at and book.revision == self._revision and book.dated_revision == self._dated:
            return
        self._look_at = self._clock() + FLEET_KEPT_S
        self._fleet = tuple(sorted(set(self._parts())))
        if book.dated_revision != self._dated:
            self._changes = book.changes_from(self._wall())
            self._instants = [instant for instant, _ in self._changes]
        self._revision, self._dated = book.revision, book.dated_revision
        self._known.clear()
        self._present.clear()
        self._changing.clear()

    def _terms(self, version: VersionRecord, then: float | None = None) -> WorstTerms:
        """Now, or at a unix second."""
        terms = self._known.get((version.id, then))
        if terms is None:
            if len(self._known) >= KNOWN_AT_MOST:
                self._known.clear()
            spec, book, fleet = version.spec, self._book, self._fleet
            terms = self._known[version.id, then] = WorstTerms(
                dearest_rate(spec, book, fleet, then) + hooks_rate(spec, book, fleet, then),
                longest_minimum(spec, book, fleet, then),
                dearest_units(spec, book, then),
            )
        return terms

    def cost(
        self, spent: Sequence[Spent], payer: Payer = NOBODY, tenant: str = "", units: Mapping[str, int] = NOTHING
    ) -> int:
        """Of a tenant's starts that were metered, and of the units that it is billed for.

        What is rounded up of one call is less for the next of the same `payer`.
        """
        book = self._book
        if book.revision != self._weighed:
            self._weighed = book.revision
            self._weights.clear()
        off = book.discount(tenant) if book.has_discounts else 0
        rest = self._rounded.get(payer)
        if rest is None:
            if len(self._rounded) >= KNOWN_AT_MOST:
                self._rounded.clear()
            rest = self._rounded[payer] = RoundedRest()
        if not (units and book.sells_units) and len(spent) == 1:
            one = spent[0]
            kind = one.price, one.purchase, one.ppm, one.core_ppm, one.gib_ppm, off
            weight = self._weights.get(kind) or self._weigh(kind)
            if not weight.least and (rest.scale == weight.scale or not rest.parts):
                total, scale = rest.parts + one.ns * weight.paid, weight.scale
                cost = -(-total // scale)
                rest.parts, rest.scale = total - cost * scale, scale
                return cost
        return self._cost_of_all(spent, units, off, rest)

    def _cost_of_all(self, spent: Sequence[Spent], units: Mapping[str, int], off: int, rest: RoundedRest) -> int:
        """Of starts that pay otherwise than those before, of several, or of what is billed beside their time."""
        book, listed = self._book, 0
        for one in spent:
            kind = one.price, one.purchase, one.ppm, one.core_ppm, one.gib_ppm, off
            weight = self._weights.get(kind) or self._weigh(kind)
            listed += one.ns * weight.listed
            if weight.least:
                listed += lack_ns(one, weight.least) * one.ppm * weight.rate
        if units and book.sells_units:
            listed += sum(charge.amount * charge.ppm * charge.rate for charge in unit_charges(units, book))
        total = rest.parts * (SCALE // rest.scale) + listed * (NANO_USD - off)
        cost = -(-total // SCALE)
        rest.parts, rest.scale = total - cost * SCALE, SCALE
        return cost

    def _weigh(self, kind: SpentKind) -> SpentWeight:
        book = self._book
        if len(self._weights) >= KNOWN_AT_MOST:
            self._weights.clear()
        price, purchase, ppm, core_ppm, gib_ppm, off = kind
        rate, least = book.rate_and_least(price, purchase=purchase, ppm=min(ppm, WHOLE_DEVICE))
        listed = ppm * rate
        for more, more_ppm in ((CORE_PRICE, core_ppm), (MEMORY_PRICE, gib_ppm)):
            listed += more_ppm * book.rate(more, purchase=purchase)
        paid = listed * (NANO_USD - off)
        common = gcd(paid, SCALE)
        weight = self._weights[kind] = SpentWeight(listed, least, rate, paid // common, SCALE // common)
        return weight

    def likely(self, version: str, worst: int) -> int:
        """What 99 of 100 calls of a version cost at most, as far as they are known here."""
        likely = self._likely.get(version, worst)
        return likely if likely < worst else worst

    def learn(self, version: str, cost: int) -> None:
        """A call of a version has cost this."""
        costs = self._costs.get(version)
        if costs is None:
            if len(self._costs) >= KNOWN_AT_MOST:
                gone = next(iter(self._costs))
                del self._costs[gone]
                self._likely.pop(gone, None)
            costs = self._costs[version] = deque(maxlen=LEARNT_FROM)
        costs.append(cost)
        self._learnt += 1
        known = self._likely.get(version)
        if len(costs) >= ENOUGH and (known is None or cost > known or self._learnt % ENOUGH == 0):
            # A larger one counts at once, a smaller one when all are looked through again.
            self._likely[version] = sorted(costs)[min(len(costs) - 1, int(QUANTILE * len(costs)))]


def starts_of(spec: FunctionSpec) -> int:
    """How often a live call may be started."""
    return 1 + spec.retries + LOST_STARTS * spec.idempotent


def parts_of(reports: Iterable[NodeReport]) -> Iterator[FleetPart]:
    """What the containers of a fleet may get."""
    for report in reports:
        for gpu in report.devices:
            yield gpu.price, WHOLE_DEVICE
        for part in report.slices:
            if cores_of(part.price):
                yield part.price, part.ppm


def dearest_rate(
    spec: FunctionSpec, book: PriceBook, fleet: Iterable[FleetPart], at: float | None = None
) -> int:  # fmt: skip
    """Nano-dollars per hour of the dearest container that a function may get, at a unix second, by default now."""
    parts = tuple(fleet)
    asks = [ask for ask in spec.gpu if ask.type != "CPU"]
    rates = [ask.count * max(_rate(book, price, at) for price in _prices(ask.type, parts)) for ask in asks]
    if len(asks) < len(spec.gpu) or not spec.gpu:
        rates.append(_cpu_rate(book, parts, at))
    return max(rates) + _host_rate(spec, book, at)


def hooks_rate(spec: FunctionSpec, book: PriceBook, fleet: Iterable[FleetPart], at: float | None = None) -> int:
    """The same of the containers of its hooks together: each may have as long as the method."""
    parts, hooks = tuple(fleet), [] if spec.pipeline is UNSET else list(spec.pipeline.hooks.values())
    return sum(
        _cpu_rate(book, parts, at)
        + _promised_rate(UNNAMED_CPU_MILLIS if hook.cpu is None else round(hook.cpu * 1000), hook.memory, book, at)
        for hook in hooks
    )


def longest_minimum(
    spec: FunctionSpec, book: PriceBook, fleet: Iterable[FleetPart], at: float | None = None
) -> int:  # fmt: skip
    """The most nanoseconds that a start is billed at least, in any container that a function may get."""
    parts = tuple(fleet)
    prices = {price for ask in spec.gpu if ask.type != "CPU" for price in _prices(ask.type, parts)}
    if not spec.gpu or spec.pipeline is not UNSET or any(ask.type == "CPU" for ask in spec.gpu):
        prices |= {CPU_PRICE, *(price for price, _ in parts if cores_of(price))}
    return max(book.longest_minimum_ns(price, at) for price in prices)


def dearest_units(spec: FunctionSpec, book: PriceBook, at: float | None = None) -> int:
    """What the units of one call cost at most, as `WorstTerms.units`."""
    return sum(most * book.unit_rate(unit, at) for unit, most in max_units_of(spec).items()) * (NS_PER_HOUR // MILLION)


def _prices(gpu_type: str, parts: tuple[FleetPart, ...]) -> set[str]:
    """The prices of the devices that an ask may get."""
    if gpu_type != "ANY":
        return {gpu_price(gpu_type)}
    there = {price for price, _ in parts if not cores_of(price)}
    return there or {UNKNOWN_PRICE, *map(gpu_price, PRICED_GPUS)}


def _cpu_rate(book: PriceBook, parts: tuple[FleetPart, ...], at: float | None) -> int:
    """Of the largest CPU slot; without any, of a core."""
    slots = [-(-_rate(book, price, at) * ppm // WHOLE_DEVICE) for price, ppm in parts if cores_of(price)]
    return max(slots, default=_rate(book, CPU_PRICE, at))


def _host_rate(spec: FunctionSpec, book: PriceBook, at: float | None) -> int:
    """Of what a container is promised of its host beside the slice, at most."""
    return _promised_rate(spec.cpu_millis, spec.memory, book, at)


def _promised_rate(cpu_millis: int, memory: int, book: PriceBook, at: float | None) -> int:
    cores = _rate(book, CORE_PRICE, at) * cpu_millis
    of_memory = _rate(book, MEMORY_PRICE, at) * memory
    return -(-cores // 1_000) + -(-of_memory // GIB)


def _rate(book: PriceBook, price: str, at: float | None) -> int:
    return max(book.rate(price, at, purchase=purchase) for purchase in PURCHASES)
