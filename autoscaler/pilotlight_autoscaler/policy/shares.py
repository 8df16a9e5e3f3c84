"""Weighted dominant resource fairness between tenants, with guarantees (Ghodsi et al., NSDI 2011). Pure.

A tenant's *share* is the largest part that it holds of any resource of the fleet: memory of GPUs, their compute, CPU
slots. Its *level* is its share over its weight. Words are Kueue's:

    guarantee   nominal quota: the share that it gets back from others as soon as it wants it
    borrow      borrowing limit: how much more than its guarantee it may hold; not set: as much as is free
    weight      how tenants that borrow compare

*Who is next* (progressive filling): tenants below their guarantee first, the one that has least of it; then the one
with the lowest level. So a guarantee is the least that a tenant's weighted share may be, and is not added to it.

*Who gives back*, once all is held: a claimant takes from a tenant that is left with its guarantee, and either the
claimant is below its own, or its level with the container is no higher than the other's without. Every exchange brings
the lower level up and leaves it the lower one, so no two tenants take from each other in turn; a tenant that is less
than a container short of its share takes nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from pilotlight_autoscaler.policy.missing_starts import AskT, MissingStarts
from pilotlight_core.model.limits import Limits, ReachedLimit
from pilotlight_placement.fleet.tenant_holdings import NOTHING_HELD, HeldResources

NEGLIGIBLE = 1e-9
"""Shares that differ by less are equal."""
Turn = tuple[bool, float]
"""Whether a tenant has its guarantee, and how much it has of what it should: the least is next."""
LAST: Turn = (True, math.inf)


@dataclass(frozen=True, kw_only=True)
class ShareTerms:
    """What a tenant may have of the fleet; parts of it are 0 to 1."""

    weight: float = 1.0
    guarantee: float = 0.0
    borrow: float | None = None

    @classmethod
    def of(cls, weight: float, limits: Limits) -> ShareTerms:
        """The terms of a tenant with this weight and these limits."""
        return cls(weight=weight, guarantee=limits.guarantee or 0.0, borrow=limits.borrow)

    @property
    def most(self) -> float:
        """The largest share that it may have."""
        return math.inf if self.borrow is None else self.guarantee + self.borrow


EVEN_TERMS = ShareTerms()


class TenantShares:
    """The shares of tenants by what they hold, which may change meanwhile."""

    def __init__(
        self,
        capacity: HeldResources,
        held_by: Callable[[str], HeldResources],
        terms: Mapping[str, ShareTerms],
    ) -> None:
        """`terms` has all tenants that hold something or wait."""
        self._capacity = capacity
        self._held_by = held_by
        self._terms = affordable(terms)

    def terms(self, tenant: str) -> ShareTerms:
        """Its terms, as far as the fleet can keep them."""
        return self._terms.get(tenant, EVEN_TERMS)

    def share(self, tenant: str, more: HeldResources = NOTHING_HELD, times: int = 1) -> float:
        """A tenant's share, with `times` of `more`."""
        return self.part(self._held_by(tenant).plus(more, times))

    def level(self, tenant: str, more: HeldResources = NOTHING_HELD) -> float:
        """Its share for its weight."""
        return self.share(tenant, more) / self.terms(tenant).weight

    def part(self, held: HeldResources) -> float:
        """The largest part of any resource of the fleet."""
        parts = [have / all_ for have, all_ in zip(held, self._capacity, strict=True) if all_]
        return max(parts, default=0.0)

    def is_below_guarantee(self, tenant: str) -> bool:
        """Whether it holds less than is guaranteed to it."""
        return self.share(tenant) < self.terms(tenant).guarantee - NEGLIGIBLE

    def room(self, tenant: str, need: HeldResources, taken: HeldResources = NOTHING_HELD) -> int | None:
        """How many more containers its borrowing limit allows, after those that take `taken`; None: any number."""
        most, each = self.terms(tenant).most, self.part(need)
        if math.isinf(most) or not each:
            return None
        return max(0, math.floor((most - self.share(tenant, taken) + NEGLIGIBLE) / each))

    def reached(self, tenant: str) -> ReachedLimit:
        """Its borrowing limit, as the one that allows no more."""
        most = self.terms(tenant).most
        return ReachedLimit(limit="borrow", tenant=tenant, allowed=most, current=self.share(tenant))

    def may_claim(self, claimant: str, need: HeldResources, highest: float) -> bool:
        """Whether there may be anything to take for it, where `highest` is the highest level of all."""
        return self.is_below_guarantee(claimant) or self.level(claimant, need) <= highest + NEGLIGIBLE

    def may_take(self, claimant: str, need: HeldResources, victim: str, given: HeldResources = NOTHING_HELD) -> bool:
        """Whether a claimant may have what the victim gives: `given`, and what has been released of it already."""
        left = self.share(victim, given, -1)
        terms = self.terms(victim)
        if left < terms.guarantee - NEGLIGIBLE:
            return False
        return self.is_below_guarantee(claimant) or self.level(claimant, need) <= left / terms.weight + NEGLIGIBLE

    def turn(self, tenant: str, more: HeldResources = NOTHING_HELD) -> Turn:
        """When it is its turn; tenants are served in this order."""
        share, terms = self.share(tenant, more), self.terms(tenant)
        if share < terms.guarantee - NEGLIGIBLE:
            return False, share / terms.guarantee
        return True, share / terms.weight

    def in_turn(self, missing: Sequence[MissingStarts[AskT]], free: HeldResources) -> list[tuple[AskT, int]]:
        """In which order to start what is missing, as asks with numbers of containers.

        Those of one tenant take turns, in the given order: the first container of each before the second of any. What
        is `free` is dealt out one by one; what then finds no room comes last, and holds up nothing of the same tenant.
        """
        queues: dict[str, deque[tuple[int, MissingStarts[AskT]]]] = {}
        for place, each in enumerate(missing):
            queues.setdefault(each.tenant, deque()).append((place, each))
        dealt = dict.fromkeys(queues, HeldResources())
        heap = [(self.turn(tenant), queue[0][0], tenant) for tenant, queue in queues.items()]
        heapify(heap)
        ordered: list[tuple[AskT, int]] = []
        waiting: list[tuple[AskT, int]] = []
        while heap:
            _, _, tenant = heappop(heap)
            queue = queues[tenant]
            place, each = queue.popleft()
            left = free.plus(each.need, -1)
            if not any(each.need) or any(need and rest < 0 for need, rest in zip(each.need, left, strict=True)):
                waiting.append((each.ask, each.count))
            else:
                free, dealt[tenant] = left, dealt[tenant].plus(each.need)
                _append(ordered, each.ask)
                if each.count > 1:
                    queue.append((place, replace(each, count=each.count - 1)))
            if queue:
                heappush(heap, (self.turn(tenant, dealt[tenant]), queue[0][0], tenant))
        return ordered + waiting


def affordable(terms: Mapping[str, ShareTerms]) -> dict[str, ShareTerms]:
    """The terms with guarantees that the fleet can keep together: all smaller by the same part if they are too much."""
    promised = sum(each.guarantee for each in terms.values())
    if promised <= 1.0 + NEGLIGIBLE:
        return dict(terms)
    return {tenant: replace(each, guarantee=each.guarantee / promised) for tenant, each in terms.items()}


def _append(ordered: list[tuple[AskT, int]], ask: AskT) -> None:
    """One more of an ask, in one entry with those just before it."""
    if ordered and ordered[-1][0] is ask:
        ordered[-1] = (ask, ordered[-1][1] + 1)
    else:
        ordered.append((ask, 1))
