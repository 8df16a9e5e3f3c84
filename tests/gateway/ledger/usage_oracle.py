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

    rates: dict[str, list[tuple[float, int]]]
    """By price: (from the unix second, nano-dollars an hour), in their order."""
    seen: dict[str, UsageEvent] = field(default_factory=dict)

    def add(self, events: Sequence[UsageEvent]) -> None:
        self.seen.update((event.id, event) for event in events)

    def parts(self) -> list[tuple[str, str, int, Fraction]]:
        """(payer, call or "", nanoseconds, dollars) of all that is known."""
        found = []
        lost = {
            share.call_id for event in self.seen.values() for share in event.shares if share.fault is Fault.PLATFORM
        }
        for event in self.seen.values():
            at = event.wall_ns / 10**9
            rate = [nano for starts, nano in self.rates[event.price] if starts <= at][-1]
            dollars = Fraction(event.ppm * rate, 10**6 * HOUR * 10**9)
            for share in event.shares:
                payer = "" if share.call_id in lost else share.tenant
                found.append((payer, share.call_id, share.ns, share.ns * dollars))
            if not event.shares:
                guess = event.purpose in (Purpose.PREWARM, Purpose.MOVE) and not event.used
                payer = "" if guess or event.state is LeaseState.PROVISIONING else event.tenant
                found.append((payer, "", event.t1 - event.t0, (event.t1 - event.t0) * dollars))
        return found

    def by_payer(self) -> dict[str, tuple[int, Fraction]]:
        ns, cost = Counter[str](), dict[str, Fraction]()
        for payer, _, length, dollars in self.parts():
            ns[payer] += length
            cost[payer] = cost.get(payer, Fraction(0)) + dollars
        return {payer: (ns[payer], cost[payer]) for payer in cost if ns[payer] or cost[payer]}

    def by_call(self) -> dict[tuple[str, str], tuple[int, Fraction]]:
        """Of tenants alone, without calls that cost nothing."""
        found: dict[tuple[str, str], tuple[int, Fraction]] = {}
        for payer, call, ns, dollars in self.parts():
            if payer and call:
                before = found.get((payer, call), (0, Fraction(0)))
                found[payer, call] = before[0] + ns, before[1] + dollars
        return {which: sums for which, sums in found.items() if sums[0]}
