"""What the ledger should say, in the fewest lines: an oracle that knows the rules and none of the ledger's code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault, Purpose

HOUR = 3_600 * 10**9


@dataclass
class BilledShare:
    event: UsageEvent
    share: CallShare
    paid: int
    """Nanoseconds that who asked for the call pays."""


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

    def starts(self) -> list[list[BilledShare]]:
        """The shares of each start of a call, in their order. What its container did for nothing is given back."""
        found: dict[tuple[str, str], list[list[BilledShare]]] = {}
        for event in sorted(self.seen.values(), key=lambda each: each.t0):
            for share in event.shares:
                runs = found.setdefault((event.container, share.call_id), [[]])
                lost = share.fault is Fault.PLATFORM
                back = share.earlier if lost else 0
                for before in (one for one in reversed(runs[-1]) if not one.share.ended):
                    part = min(back, before.paid)
                    before.paid, back = before.paid - part, back - part
                runs[-1].append(BilledShare(event, share, 0 if lost else share.ns))
                if share.ended and (lost or not share.moved):  # behind what a moved one kept comes what it lost
                    runs.append([])
        return [run for runs in found.values() for run in runs]

    def parts(self) -> list[tuple[str, str, int, Fraction]]:
        """(payer, call or "", nanoseconds, dollars) of all time that is known."""
        found = []
        for one in (one for run in self.starts() for one in run):
            for payer, ns in ((one.share.tenant, one.paid), ("", one.share.ns - one.paid)):
                at = one.event.wall_ns / 10**9
                found.append((payer, one.share.call_id, ns, ns * self.dollars(one.event, at) * self.paid(payer, at)))
        for event in (event for event in self.seen.values() if not event.shares):
            at = event.wall_ns / 10**9
            guess = event.purpose in (Purpose.PREWARM, Purpose.MOVE) and not event.used
            payer = "" if guess or event.state is LeaseState.PROVISIONING else event.tenant
            cost = (event.t1 - event.t0) * self.dollars(event, at) * self.paid(payer, at)
            found.append((payer, "", event.t1 - event.t0, cost))
        return found

    def charges(self) -> list[tuple[str, str, int, Fraction]]:
        """(payer, call, nanoseconds or tokens, dollars) of what calls are billed beside their time."""
        found = []
        for run in self.starts():
            for event, share in ((one.event, one.share) for one in run if one.share.ended):
                if share.fault is Fault.PLATFORM:
                    continue
                at, payer = event.wall_ns / 10**9, share.tenant
                lack = 0 if share.resumed else self.rate(event.price, at)[1] - sum(one.paid for one in run)
                if lack > 0:
                    found.append((payer, share.call_id, lack, lack * self.dollars(event, at) * self.paid(payer, at)))
                price = [nano for starts, nano in self.token if starts <= at][-1:]
                count = share.units.get("prompt_tokens", 0) if share.ended == "ok" else 0
                count = min(count, self.most.get(event.container, 0))
                if count and price and price[0]:
                    cost = Fraction(count * price[0], 10**15) * self.paid(payer, at)
                    found.append((payer, share.call_id, count, cost))
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
