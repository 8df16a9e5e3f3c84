"""What tenants above their share give back to those below theirs, once nothing idle is left. Pure.

    1. idle floors   that no guarantee covers: such a floor is borrowed
    2. batch         containers of versions that run batch calls alone
    3. over-share    the others, of the tenant with the highest level first
    4. siblings      of the same tenant, for a version that has no container at all, from one that has several

Of these, those with the fewest running calls come first. What is busy ends its calls: it is drained, which lasts at
most as long as its function's timeout. `shares` says who may take from whom. A floor inside the guarantee of its tenant
is never taken.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Protocol

from pilotlight_autoscaler.policy.preemption import PreemptionVictim, TrialBudget, choose_victims, group_of
from pilotlight_autoscaler.policy.scaling_policy import MIN_RESIDENCY_S, VersionView, is_idle
from pilotlight_autoscaler.policy.shares import NEGLIGIBLE, TenantShares
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.spec import Priority, VersionRecord
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.tenant_holdings import (
    NOTHING_HELD,
    HeldResources,
    resources_asked,
    resources_of,
)

SETTLED_S = 10.0
"""A younger container is not drained for weights alone: what was just started does some work."""
WAITED_S = 3.0
"""Calls wait for so long before a busy container of another tenant is drained, unless a guarantee is due: meanwhile one
may have become idle, or a move may have made room."""
SIBLING_WAITED_S = 15.0
"""The same for one of their own tenant."""
CANDIDATES = 64
"""Containers that are looked at for one that waits."""
IDLE_FLOOR, BATCH, BUSY = range(3)


def is_batch(view: VersionView) -> bool:
    """Whether all calls that wait or run are of the class batch."""
    classes = view.demand.classes if view.demand is not None else {}
    return bool(classes) and all(name == Priority.BATCH for name in classes)


def waited_s(view: VersionView) -> float:
    """How long the calls of a version have waited; those that were refused come again, and count as for ever."""
    if view.demand is None or not view.demand.waiting:
        return 0.0
    return view.demand.oldest_ms / 1000.0 if view.demand.queued else math.inf


class RunningVersions(Protocol):
    """Whose containers there are."""

    def version_of(self, container: str) -> str:
        """The version of a container; "": no node reports it."""
        ...

    def of_tenant(self, tenant: str) -> Collection[str]:
        """The versions of a tenant that have containers."""
        ...


class Reclaim:
    """What may be taken back in one pass. The caller releases from the fleet what was chosen."""

    def __init__(
        self,
        fleet: Fleet,
        shares: TenantShares,
        views: Mapping[str, VersionView],
        versions: Mapping[str, VersionRecord],
        running: RunningVersions,
    ) -> None:
        self._running = running
        self._there: dict[frozenset[DeviceGroup], dict[str, list[str]]] = {}
        """By groups of devices: tenants with containers there, and of which versions."""
        self._given_by: dict[tuple[frozenset[DeviceGroup], str], dict[int, list[PreemptionVictim]]] = {}
        self._fleet = fleet
        self._shares = shares
        self._views = views
        self._versions = versions
        self._levels = {tenant: shares.level(tenant) for tenant in fleet.holdings.tenants()}
        self._highest = max(self._levels.values(), default=0.0)
        self._floored_by_tenant: dict[str, dict[str, HeldResources]] = {}
        """By tenant, its versions with a floor, and what each container of them holds."""
        self._with_siblings: dict[str, bool] = {}
        self._taken = Counter[str]()
        """Containers that were chosen, by version."""
        self._served = set[str]()
        """Versions for which a place was found."""
        self._changed = set[str]()
        """Tenants whose levels are not those that were counted last."""
        self._futile: set[tuple[bool, bool, Ask]] = set()
        """Asks, whichever function's, for which nothing can be taken in this pass."""

    def is_due(self, version: str, ask: Ask) -> bool:
        """Whether there may be anything to take for a version."""
        return self._shares.may_claim(ask.tenant, self._need(ask), self._highest) or self._asks_siblings(version)

    def choose(
        self, version: str, ask: Ask, *, spared: Collection[str], trials: TrialBudget
    ) -> Sequence[PreemptionVictim]:
        """The containers to drain so that the ask has a place; none if nobody has to give any."""
        view = self._views[version]
        kind = (self._asks_siblings(version), waited_s(view) < WAITED_S, shape_of(ask))
        if kind in self._futile:
            return ()
        candidates = list(islice(self._candidates(version, ask, spared), CANDIDATES))
        found = choose_victims(
            self._fleet, ask, candidates, trials=trials, allows=lambda group: self._allows(version, ask, group)
        )
        if not found:
            self._futile.add(kind)
        self._taken.update(whose for _, whose in found)
        self._changed.update((ask.tenant, *(self._versions[whose].tenant for _, whose in found)))
        return found

    def note_place(self, version: str) -> None:
        """Note that a container of it has a place, so that it asks less of its siblings."""
        self._served.add(version)

    def _need(self, ask: Ask) -> HeldResources:
        return resources_asked(self._fleet.offers(ask))

    def _candidates(self, version: str, ask: Ask, spared: Collection[str]) -> Iterator[PreemptionVictim]:
        """Containers on devices of use that may go one by one, in the order in which they go."""
        of_use, need, due = (
            self._fleet.offers(ask).by_group,
            self._need(ask),
            self._shares.is_below_guarantee(ask.tenant),
        )
        self._levels |= {tenant: self._shares.level(tenant) for tenant in self._changed}
        self._changed.clear()
        claim, is_new = self._shares.level(ask.tenant, need), waited_s(self._views[version]) < WAITED_S
        others = [
            tenant
            for tenant in self._versions_on(frozenset(of_use))
            if tenant != ask.tenant and (due or self._levels.get(tenant, 0.0) >= claim)
        ]
        others.sort(key=lambda tenant: (-self._levels.get(tenant, 0.0), tenant))
        givers = [(kind, tenant) for kind in (IDLE_FLOOR, BATCH, BUSY) for tenant in others]
        givers += [(kind, ask.tenant) for kind in (IDLE_FLOOR, BATCH, BUSY) if self._asks_siblings(version)]
        takes: dict[tuple[str, HeldResources], bool] = {}
        for kind, tenant in givers:
            for container, whose in self._given(frozenset(of_use), tenant).get(kind, ()):
                held = self._fleet.held.get(container.id)
                if held is None or container.id in spared or group_of(self._fleet, container.id) not in of_use:
                    continue
                if kind != IDLE_FLOOR and not due and (is_new or container.age_s < SETTLED_S):
                    continue
                if tenant != ask.tenant:
                    what = (tenant, resources_of(held.slice))
                    if what not in takes:
                        takes[what] = self._shares.may_take(ask.tenant, need, *what)
                    if not takes[what]:
                        continue
                if self._views[whose].floor:
                    self._floored(tenant)  # before any of them is released
                if self._keeps_floor(whose, 1) and (tenant != ask.tenant or self._gives_sibling(version, {whose: 1})):
                    yield container, whose

    def _allows(self, version: str, ask: Ask, group: Sequence[PreemptionVictim]) -> bool:
        """Whether the version may have what these, which are released, have held."""
        going = Counter(whose for _, whose in group)
        tenants = {self._versions[whose].tenant for whose in going}
        if ask.tenant in tenants and not self._gives_sibling(version, going):
            return False
        need = self._need(ask)
        others = tenants - {ask.tenant}
        return all(self._shares.may_take(ask.tenant, need, tenant) for tenant in others) and all(
            self._keeps_floor(whose, count) for whose, count in going.items()
        )

    def _asks_siblings(self, version: str) -> bool:
        """Whether it has waited for long without any container, and others of its tenant have several."""
        view = self._views[version]
        has_none = version not in self._served and not view.size
        return has_none and waited_s(view) >= SIBLING_WAITED_S and self._has_siblings(self._versions[version].tenant)

    def _gives_sibling(self, version: str, going: Mapping[str, int]) -> bool:
        """Whether its siblings keep a container each, and give no other calls' place for those of the class batch."""
        mine = [whose for whose in going if self._versions[whose].tenant == self._versions[version].tenant]
        lower = is_batch(self._views[version])
        return all(self._left(whose) > going[whose] and (not lower or is_batch(self._views[whose])) for whose in mine)

    def _left(self, version: str) -> int:
        return self._views[version].size - self._taken[version]

    def _keeps_floor(self, version: str, going: int) -> bool:
        """Whether its floor stays, or what is left of its tenant's floors is all that the guarantee covers."""
        short = min(going, self._views[version].floor - self._left(version) + going)
        if short <= 0:
            return True
        tenant = self._versions[version].tenant
        left = self._floors_held(tenant).plus(self._floored(tenant)[version], -short)
        return self._shares.part(left) >= self._shares.terms(tenant).guarantee - NEGLIGIBLE

    def _floors_held(self, tenant: str) -> HeldResources:
        """What containers of a tenant's floors hold."""
        held = NOTHING_HELD
        for version, size in self._floored(tenant).items():
            held = held.plus(size, max(0, min(self._views[version].floor, self._left(version))))
        return held

    def _size(self, view: VersionView) -> HeldResources:
        """What one of its containers holds."""
        there = (self._fleet.held.get(container.id) for container in view.containers)
        return next((resources_of(held.slice) for held in there if held is not None), NOTHING_HELD)

    def _floored(self, tenant: str) -> dict[str, HeldResources]:
        """A tenant's versions with a floor, and what each container of them holds."""
        if tenant not in self._floored_by_tenant:
            mine = (version for version, record in self._versions.items() if record.tenant == tenant)
            floored = {version: self._size(view) for version in mine if (view := self._views[version]).floor}
            self._floored_by_tenant[tenant] = floored
        return self._floored_by_tenant[tenant]

    def _has_siblings(self, tenant: str) -> bool:
        """Whether a version of the tenant has several containers."""
        if tenant not in self._with_siblings:
            mine = (version for version in self._running.of_tenant(tenant) if version in self._views)
            self._with_siblings[tenant] = any(len(self._views[version].containers) > 1 for version in mine)
        return self._with_siblings[tenant]

    def _versions_on(self, groups: frozenset[DeviceGroup]) -> dict[str, list[str]]:
        """The tenants with containers on these devices, and of which versions."""
        if groups not in self._there:
            nodes = ((self._fleet.by_rank[rank], group) for group in groups for rank in group.nodes)
            held = {name for node, group in nodes for unit in node.by_group[group] for name in unit.held}
            there: dict[str, list[str]] = {}
            for version in sorted({self._running.version_of(name) for name in held}):
                if version in self._versions:
                    there.setdefault(self._versions[version].tenant, []).append(version)
            self._there[groups] = there
        return self._there[groups]

    def _given(self, groups: frozenset[DeviceGroup], tenant: str) -> dict[int, list[PreemptionVictim]]:
        """What a tenant could give of each kind, of versions with containers on these devices.

        First of the version that has most; of a version those with the fewest calls, and of these the youngest.
        """
        if (groups, tenant) in self._given_by:
            return self._given_by[groups, tenant]
        found: dict[int, list[tuple[int, PreemptionVictim]]] = {}
        for version in self._versions_on(groups).get(tenant, ()):
            view = self._views[version]
            busy = BATCH if is_batch(view) else BUSY
            # One that starts is of use to nobody before it is ready.
            ready = [each for each in view.containers if each.state is ContainerState.READY]
            ready.sort(key=lambda each: (each.running, -each.idle_s, each.age_s, each.id))
            for number, container in enumerate(ready):
                kind = IDLE_FLOOR if is_idle(container, MIN_RESIDENCY_S) else busy
                found.setdefault(kind, []).append((number - view.size, (container, version)))
        given = {kind: [victim for _, victim in sorted(each, key=lambda one: one[0])] for kind, each in found.items()}
        self._given_by[groups, tenant] = given
        return given


def shape_of(ask: Ask) -> Ask:
    """The ask, whichever function's it is: what finds no place for one finds none for another of the tenant."""
    return replace(ask, function="", resident=()) if ask.spread is None and not ask.avoid else ask
