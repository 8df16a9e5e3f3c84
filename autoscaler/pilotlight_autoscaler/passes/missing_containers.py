"""The containers that versions should have and have not, as far as their tenants' limits allow them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set

from pilotlight_autoscaler.passes.parked_containers import unpark
from pilotlight_autoscaler.passes.pass_shares import free_resources, shares_of
from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.passes.version_views import explain_level, held_by
from pilotlight_autoscaler.policy.desired import purpose_of
from pilotlight_autoscaler.policy.missing_starts import MissingStarts
from pilotlight_autoscaler.policy.scaling_policy import wanted_by_demand, wanted_by_level
from pilotlight_autoscaler.policy.shares import LAST, TenantShares
from pilotlight_autoscaler.policy.tenant_rooms import LimitedVersion, TenantRooms
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.tenant_holdings import HeldResources, resources_asked

AskCounts = tuple[tuple[Ask, int], ...]
"""What to start, in order; an ask may come several times."""


class MissingContainers:
    def __init__(self, state: PassState) -> None:
        given = state.given
        self._state = state
        self._rooms = TenantRooms(given.limits_of, lambda tenant: held_by(state.world, given.versions, tenant))
        self._taken: dict[str, HeldResources] = {}
        """What of each tenant's borrowing limit is taken by what is missing."""
        self._tenants: Set[str] = frozenset()
        self._shares: TenantShares | None = None
        self.limited: list[LimitedVersion] = []
        """The versions with more missing than their tenant's limits allow."""
        self.starts: AskCounts = ()
        """What was found, in the order in which it is to start."""

    @property
    def shares(self) -> TenantShares:
        """Of the tenants that hold something or miss something."""
        if self._shares is None:
            self._shares = shares_of(self._state, self._tenants)
        return self._shares

    def find(self, decided: Collection[str], *, at_an_edge: bool = False) -> dict[Ask, list[str]]:
        """For each ask those of the versions that miss a container, each as often as it misses one."""
        asks: dict[Ask, list[str]] = {}
        short = self._short(decided)
        backoff = self._state.world.backoff
        delayed = backoff.refused(short, self._state.at)
        self._tenants = {self._state.versions[version].tenant for version in short}
        for version in self._longest_waiting(short.keys() - delayed):
            if at_an_edge and self._is_held_back(version):
                continue
            # One that fails is tried by one container, however many should be there.
            ask = self._state.ask(version)
            allowed = self._allowed(version, ask, 1 if backoff.is_failing(version) else short[version])
            if allowed > 0 and self._state.views[version].parked:
                allowed -= self._unpark(version, self._in_turn(ask, allowed, short))
            if allowed > 0:
                backoff.tried(version, self._state.at)
                asks.setdefault(ask, []).extend([version] * allowed)
        if not asks:
            return asks
        offers = self._state.fleet.offers
        missing = [
            MissingStarts(ask=ask, tenant=ask.tenant, need=resources_asked(offers(ask)), count=len(names))
            for ask, names in asks.items()
        ]
        self.starts = tuple(self.shares.in_turn(missing, free_resources(self._state.fleet)))
        return asks

    def _unpark(self, version: str, most: int) -> int:
        """Have parked containers serve instead of new ones; how many."""
        state = self._state
        purpose = purpose_of(state.views[version], state.wish_for(version), 0)
        return unpark(state, version, most, purpose)

    def _in_turn(self, ask: Ask, most: int, short: Mapping[str, int]) -> int:
        """For how many of a version's parked containers there is room beside what tenants miss whose turn is before."""
        others = self._tenants - {ask.tenant}
        turn = self.shares.turn(ask.tenant) if others else LAST
        first = {tenant for tenant in others if self.shares.turn(tenant) < turn}
        if not first:
            return most
        state = self._state
        need, left = resources_asked(state.fleet.offers(ask)), free_resources(state.fleet)
        for version, count in short.items():
            if state.versions[version].tenant in first:
                left = left.plus(resources_asked(state.fleet.offers(state.ask(version))), -count)
        return max(0, min([most, *(rest // each for each, rest in zip(need, left, strict=True) if each)]))

    def _is_held_back(self, version: str) -> bool:
        """Whether a place was just made by draining for another tenant: the next whole pass says who has it."""
        tenant = self._state.versions[version].tenant
        return any(whose != tenant for whose in self._state.world.reclaimed_free())

    def _allowed(self, version: str, ask: Ask, wanted: int) -> int:
        """How many of the missing containers the tenant's limits allow; the rest is noted."""
        record = self._state.versions[version]
        need, taken = resources_asked(self._state.fleet.offers(ask)), self._taken.get(ask.tenant, HeldResources())
        room = self.shares.room(ask.tenant, need, taken)
        allowed, reached = self._rooms.take(record.tenant, record.spec, wanted if room is None else min(room, wanted))
        if reached is None and allowed < wanted:
            reached = self.shares.reached(ask.tenant)
        self._taken[ask.tenant] = taken.plus(need, allowed)
        if reached is not None:
            self.limited.append(LimitedVersion(version=version, missing=wanted - allowed, reached=reached))
        return allowed

    def _short(self, decided: Collection[str]) -> dict[str, int]:
        """Those of the versions that should have more containers, and how many."""
        short = {}
        for version in decided:
            view = self._state.views[version]
            count = self._state.wanted(version) - view.size
            if count > 0 and wanted_by_level(view) > wanted_by_demand(view):
                self._state.decision.notes.append(explain_level(self._state.versions[version], view))
            if count > 0:
                short[version] = count
        return short

    def _longest_waiting(self, versions: Iterable[str]) -> list[str]:
        """The order in a tenant: whose calls wait before others, of them first those without any container."""

        def waited(version: str) -> tuple[bool, bool, float, str]:
            view = self._state.views[version]
            oldest_ms = view.demand.oldest_ms if view.demand is not None else 0.0
            waits = view.demand is not None and bool(view.demand.waiting)
            return not waits, view.size > 0, -oldest_ms, version

        return sorted(versions, key=waited)


def within(starts: AskCounts, counts: Mapping[Ask, int]) -> AskCounts:
    """The starts in their order, of each ask no more than so many."""
    left, found = dict(counts), []
    for ask, count in starts:
        if (most := min(count, left[ask])) > 0:
            found.append((ask, most))
            left[ask] -= most
    return tuple(found)
