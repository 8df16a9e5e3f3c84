"""What the ledger should say, in the fewest lines: an oracle that knows the rules and none of the ledger's code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from pilotlight_core.model.messages.usage import LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault, Purpose

HOUR = 3_600 * 10**9


@dataclass
class UsageOracle:
    """Adds up events that it is told of in any order, each as often as one likes."""

    rates: dict[str, list[tuple[float, int, int]]]
    """By price: (from the unix second, nano-dollars an hour, least ns of a start), in their order."""
    parts_paid: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """By tenant: (from the unix second, nano-dollars that it pays of a dollar)."""
    token: list[tuple[float, int]] = field(default_factory=list)
    """(from the unix second, nano-dollars for a million tokens)."""
    most: dict[str, int] = field(default_factory=dict)
    """By container: of how many tokens a call is billed at most; of others of none."""
    seen: dict[str, UsageEvent] = field(default_factory=dict)

    def add(self, events: Sequence[UsageEvent]) -> None:
        self.seen.update((event.id, event) for event in events)

    def parts(self) -> list[tuple[str, str, int, Fraction]]:
        """(payer, call or "", nanoseconds, dollars) of all time that is known."""
        found = []
        lost = {
            share.call_id for event in self.seen.values() for share in event.shares if share.fault is Fault.PLATFORM
        }
        for event in self.seen.values():
            at = event.wall_ns / 10**9
            dollars = self.dollars(event, at)
            for share in event.shares:
                payer = "" if share.call_id in lost else share.tenant
                found.append((payer, share.call_id, share.ns, share.ns * dollars * self.paid(payer, at)))
            if not event.shares:
                guess = event.purpose in (Purpose.PREWARM, Purpose.MOVE) and not event.used
                payer = "" if guess or event.state is LeaseState.PROVISIONING else event.tenant
                cost = (event.t1 - event.t0) * dollars * self.paid(payer, at)
                found.append((payer, "", event.t1 - event.t0, cost))
        return found

    def charges(self) -> list[tuple[str, str, int, Fraction]]:
        """(payer, call, nanoseconds or tokens, dollars) of what calls are billed beside their time."""
        taken, found = Counter[str](), []
        for event in self.seen.values():
            for share in event.shares:
                taken[share.call_id] += share.ns  # each call is started once
        for event in self.seen.values():
            at = event.wall_ns / 10**9
            for share in (one for one in event.shares if one.ended and one.fault is not Fault.PLATFORM):
                payer, paid = share.tenant, self.paid(share.tenant, at)
                if (lack := self.rate(event.price, at)[1] - taken[share.call_id]) > 0:
                    found.append((payer, share.call_id, lack, lack * self.dollars(event, at) * paid))
                price = [nano for starts, nano in self.token if starts <= at][-1:]
                count = share.units.get("prompt_tokens", 0) if share.ended == "ok" else 0
                count = min(count, self.most.get(event.container, 0))
                if count and price and price[0]:
                    found.append((payer, share.call_id, count, Fraction(count * price[0], 10**15) * paid))
        return found

    def rate(self, price: str, at: float) -> tuple[int, int]:
        return [(nano, least) for starts, nano, least in self.rates[price] if starts <= at][-1]

    def dollars(self, event: UsageEvent, at: float) -> Fraction:
        """Of a nanosecond, by the list."""
        return Fraction(event.ppm * self.rate(event.price, at)[0], 10**6 * HOUR * 10**9)

    def paid(self, payer: str, at: float) -> Fraction:
        """What a payer pays of a dollar."""
        known = [nano for starts, nano in self.parts_paid.get(payer, []) if starts <= at]
        return Fraction(known[-1], 10**9) if known else Fraction(1)

    def by_payer(self) -> dict[str, tuple[int, Fraction]]:
        ns, cost = Counter[str](), dict[str, Fraction]()
        for payer, _, length, dollars in [*self.parts(), *self.charges()]:
            ns[payer] += length
            cost[payer] = cost.get(payer, Fraction(0)) + dollars
        return {payer: (ns[payer], cost[payer]) for payer in cost if ns[payer] or cost[payer]}

    def by_call(self) -> dict[tuple[str, str], tuple[int, Fraction]]:
        """Of tenants alone, without calls that cost nothing."""
        found: dict[tuple[str, str], tuple[int, Fraction]] = {}
        for payer, call, ns, dollars in [*self.parts(), *self.charges()]:
            if payer and call:
                before = found.get((payer, call), (0, Fraction(0)))
                found[payer, call] = before[0] + ns, before[1] + dollars
        return {which: sums for which, sums in found.items() if sums[0]}
