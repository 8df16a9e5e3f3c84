"""Which machines to launch: what placement could not place is tried on nodes that are not there yet. Pure.

1. Nodes on their way are put into a trial of the fleet, and what has no place is planned on them: it is waited for.
2. For what is left the best offer is put there too, a machine of one pool, type and zone, and it is planned again.
   Offers go by their pool's weight, then by dollars per container that they would hold, then to the zone with the
   fewest of the pool's nodes.
3. A pool that serves as a fallback is asked when the provider has no capacity for the one before it.

Nothing is launched beyond a pool's limits, nor where its provider lacked capacity a while ago. Zones that took spot
nodes away lately are left out for spot pools, as long as the pool has another one; what a spot pool is to have in any
case is `spot_nodes`' to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pilotlight_autoscaler.policy.nodes.machine_capacity import NEW, PLAIN, capacity_for
from pilotlight_autoscaler.policy.nodes.pool_view import (
    PoolTotals,
    PoolView,
    gpu_count,
    hourly_price,
    hypothetical_node,
    limit_reached,
)
from pilotlight_autoscaler.policy.nodes.spot_nodes import SpotSigns, spot_plan
from pilotlight_core.model.api.pools.pool_terms import MachineType
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node
from pilotlight_placement.plan.plan import DesiredState, plan
from pilotlight_placement.search.decision_record import Placement

AT_ONCE = 16
"""Machines that one decision asks for."""
STARTS_AT_ONCE = 128
"""Containers without a place that one decision looks at."""
ASKS_AT_ONCE = 32
"""Of different kinds."""
OTHER_TYPES = 9
"""Types beside the chosen one that a provider may take in its place."""
DEARER = 1.5
"""They cost no more than so many times as much."""


@dataclass(frozen=True, kw_only=True)
class UnplacedStarts:
    """Containers of a version for which there is no place."""

    version: str
    ask: Ask
    count: int = 1


@dataclass(frozen=True, kw_only=True)
class WantedNode:
    """A machine to launch. `types` are those that would do, the chosen one first."""

    pool: str
    types: tuple[str, ...]
    zone: str
    gpus: int
    usd_per_hour: float
    versions: tuple[str, ...] = ()
    """For whose containers."""
    stands_in: str = ""
    """The spot pool for one of whose nodes it is; "": for none."""

    @property
    def type(self) -> str:
        return self.types[0]


@dataclass(frozen=True, kw_only=True)
class NodesDecision:
    wanted: tuple[WantedNode, ...] = ()
    awaited: Mapping[str, str] = field(default_factory=dict)
    """By version: the launch that its containers wait for."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """By version: why no pool gets a node for it, in words."""


@dataclass(frozen=True, kw_only=True)
class MachineOffer:
    """A machine that could be launched."""

    view: PoolView
    type: MachineType
    zone: str
    usd_per_hour: float

    def node(self, name: str) -> Node:
        return hypothetical_node(self.view, self.type, self.zone, name)

    def capacity(self, ask: Ask) -> int:
        return capacity_for(ask, self.view, self.type, self.zone)


def wanted_nodes(
    short: Sequence[UnplacedStarts],
    pools: Sequence[PoolView],
    fleet: Fleet,
    prices: Prices,
    at: float,
    *,
    signs: SpotSigns | None = None,
) -> NodesDecision:
    """What to launch for containers without a place, at the unix second `at`; the fleet is unchanged."""
    chooser = _NodeChooser(pools, fleet, prices, at, signs or SpotSigns())
    chooser.add_least()
    with fleet.trial():
        chooser.place_on_coming(_bounded(short))
        while chooser.left and len(chooser.wanted) < AT_ONCE and chooser.add_best():
            pass
    return chooser.decision()


def _bounded(short: Sequence[UnplacedStarts]) -> list[UnplacedStarts]:
    found: list[UnplacedStarts] = []
    asks, left = set[Ask](), STARTS_AT_ONCE
    for each in short:
        if left <= 0 or (each.ask not in asks and len(asks) >= ASKS_AT_ONCE):
            continue
        asks.add(each.ask)
        found.append(UnplacedStarts(version=each.version, ask=each.ask, count=min(each.count, left)))
        left -= each.count
    return found


class _NodeChooser:
    """One decision under construction; what it places is in the fleet's trial."""

    def __init__(self, pools: Sequence[PoolView], fleet: Fleet, prices: Prices, at: float, signs: SpotSigns) -> None:
        self._pools = {view.name: view for view in pools}
        self._fleet = fleet
        self._prices = prices
        self._at = at
        self._signs = signs
        self._totals = {view.name: PoolTotals.of(view.launches) for view in pools}
        self._crowds = Counter((view.name, each.zone) for view in pools for each in view.staying)
        self._fallbacks = {view.record.terms.fallback for view in pools if view.record.is_open} - {""}
        self._versions: dict[Ask, list[str]] = {}
        """Of what is left, a version as often as it misses a container."""
        self._awaited: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self.left: dict[Ask, int] = {}
        self.wanted: list[WantedNode] = []

    def decision(self) -> NodesDecision:
        for ask in self.left:
            for version in self._versions[ask]:
                self._refused.setdefault(version, self._why_not(ask))
        refused = {version: why for version, why in self._refused.items() if why and version not in self._awaited}
        return NodesDecision(wanted=tuple(self.wanted), awaited=self._awaited, refused=refused)

    def add_least(self) -> None:
        """Machines that pools are to have in any case."""
        for view in self._pools.values():
            if not view.record.is_open:
                continue
            if view.record.terms.is_spot and view.record.terms.least_nodes:
                self._add_spot(view)
                continue
            missing = view.record.terms.least_nodes - len(view.staying)
            for _ in range(missing):
                if not self._add_cheapest(view):
                    break

    def _add_spot(self, view: PoolView) -> None:
        """Spot nodes, spread over zones, and others that stand in for those that are not ready."""
        fallback = self._pools.get(view.record.terms.fallback)
        made = spot_plan(view, fallback if fallback is not None and fallback.record.is_open else None, self._signs)
        for zone in made.spot:
            if not self._add_cheapest(view, zone=zone) and not self._add_cheapest(view):
                break
        for _ in range(made.on_demand if fallback is not None else 0):
            if fallback is None or not self._add_cheapest(fallback, stands_in=view.name):
                break

    def _add_cheapest(self, view: PoolView, *, zone: str = "", stands_in: str = "") -> bool:
        """A machine of a pool, in a zone if one is named; False: there is none, or enough for one decision."""
        offers = [offer for offer in self._offers(view) if zone in ("", offer.zone)]
        if not offers or len(self.wanted) >= AT_ONCE:
            return False
        self._take(min(offers, key=lambda offer: (offer.usd_per_hour, self._crowd(offer))), (), stands_in=stands_in)
        return True

    def place_on_coming(self, short: Sequence[UnplacedStarts]) -> None:
        """Plan what has no place on nodes that come."""
        launches: dict[str, str] = {}
        for view in self._pools.values():
            for launch in view.coming:
                type_ = view.type_named(launch.type)
                if type_ is not None and launch.node not in self._fleet.places:
                    self._fleet.put(hypothetical_node(view, type_, launch.zone, launch.node))
                    launches[launch.node] = launch.id
        for number, wanted in enumerate(self.wanted):  # those of `add_least`
            view = self._pools[wanted.pool]
            type_ = view.type_named(wanted.type)
            assert type_ is not None  # noqa: S101 - it is an offer's
            self._fleet.put(hypothetical_node(view, type_, wanted.zone, f"{NEW}{number}"))
        for each in short:
            self._versions.setdefault(each.ask, []).extend([each.version] * each.count)
        self.left = {ask: len(versions) for ask, versions in self._versions.items()}
        for node, version in self._plan():
            if node in launches:
                self._awaited[version] = launches[node]

    def add_best(self) -> bool:
        """Put the best offer for what is left there; False: there is none."""
        for ask in list(self.left):
            for offer in self._ranked(ask)[:3]:
                if self._try(offer, ask):
                    return True
        return False

    def _try(self, offer: MachineOffer, ask: Ask) -> bool:
        """Put a machine there, if something of what is left has a place on it."""
        name = f"{NEW}{len(self.wanted)}"
        before = dict(self.left), {ask: list(versions) for ask, versions in self._versions.items()}
        with self._fleet.trial() as trial:
            self._fleet.put(offer.node(name))
            placed = [version for node, version in self._plan() if node == name]
            if placed:
                trial.keep()
        if placed:
            self._take(offer, tuple(dict.fromkeys(placed)), ask)
        else:
            self.left, self._versions = before
        return bool(placed)

    def _plan(self) -> list[tuple[str, str]]:
        """Plan what is left; the node and version of each container that has a place now."""
        starts = tuple(self.left.items())
        made = plan(self._fleet, DesiredState(wants=(), starts=starts), self._at, PLAIN, keep=True)
        found: list[tuple[str, str]] = []
        for _, outcome in made.outcomes:
            if isinstance(outcome, Placement):
                ask = outcome.record.ask
                found.append((outcome.node, self._versions[ask].pop(0)))
                self.left[ask] -= 1
        self.left = {ask: count for ask, count in self.left.items() if count}
        return found

    def _ranked(self, ask: Ask) -> list[MachineOffer]:
        views = [view for view in self._pools.values() if view.name not in self._fallbacks]
        offers = self._fitting(ask, views)
        if not offers:
            offers = self._fitting(ask, self._fallbacks_for(ask, views))

        def key(offer: MachineOffer) -> tuple[int, float, float, int, str, str]:
            held = min(offer.capacity(ask), self.left[ask])
            terms = offer.view.record.terms
            price = offer.usd_per_hour
            return -terms.weight, price / held, price, self._crowd(offer), offer.view.name, offer.zone

        return sorted(offers, key=key)

    def _fitting(self, ask: Ask, views: Sequence[PoolView]) -> list[MachineOffer]:
        every = (offer for view in views for offer in self._offers(view))
        return [offer for offer in every if offer.capacity(ask)]

    def _fallbacks_for(self, ask: Ask, views: Sequence[PoolView]) -> list[PoolView]:
        """The fallbacks of pools whose provider lacks what would serve an ask, and theirs."""
        found: dict[str, PoolView] = {}
        looked = list(views)
        while looked:
            view = looked.pop()
            name = view.record.terms.fallback
            if name and name not in found and name in self._pools and self._is_missing(ask, view):
                found[name] = self._pools[name]
                looked.append(self._pools[name])
        return list(found.values())

    def _is_missing(self, ask: Ask, view: PoolView) -> bool:
        machines = _machines(view, view.zones)
        fits = ((type_, zone) for type_, zone in machines if capacity_for(ask, view, type_, zone))
        return any(view.lacks(type_.name, zone, self._at) for type_, zone in fits)

    def _offers(self, view: PoolView) -> Iterator[MachineOffer]:
        if not view.record.is_open:
            return
        for type_, zone in _machines(view, self._zones(view)):
            price = hourly_price(view, type_, self._prices)
            if not view.lacks(type_.name, zone, self._at) and not self._limit(view, type_, price):
                yield MachineOffer(view=view, type=type_, zone=zone, usd_per_hour=price)

    def _zones(self, view: PoolView) -> tuple[str, ...]:
        if not view.record.terms.is_spot:
            return view.zones
        avoided = self._signs.avoided.get(view.name, ())
        return tuple(zone for zone in view.zones if zone not in avoided) or view.zones

    def _limit(self, view: PoolView, type_: MachineType, price: float) -> str:
        return limit_reached(view.record, self._totals[view.name].plus(gpu_count(type_), price))

    def _crowd(self, offer: MachineOffer) -> int:
        return self._crowds[offer.view.name, offer.zone]

    def _take(
        self, offer: MachineOffer, versions: tuple[str, ...], ask: Ask | None = None, *, stands_in: str = ""
    ) -> None:
        view, gpus = offer.view, gpu_count(offer.type)
        others = [
            other for other in sorted(self._offers(view), key=lambda other: other.usd_per_hour)
            if other.zone == offer.zone and other.type is not offer.type
            and other.usd_per_hour <= offer.usd_per_hour * DEARER
            and (ask is None or other.capacity(ask) >= offer.capacity(ask))
        ][:OTHER_TYPES]  # fmt: skip
        types = (offer.type.name, *(other.type.name for other in others))
        # The provider may take any of them: limits hold for the largest.
        gpus = max([gpus, *(gpu_count(other.type) for other in others)])
        price = max([offer.usd_per_hour, *(other.usd_per_hour for other in others)])
        self._totals[view.name] = self._totals[view.name].plus(gpus, price)
        self._crowds[view.name, offer.zone] += 1
        self.wanted.append(
            WantedNode(
                pool=view.name, types=types, zone=offer.zone, gpus=gpus, usd_per_hour=price, versions=versions,
                stands_in=stands_in,
            )
        )  # fmt: skip

    def _why_not(self, ask: Ask) -> str:
        """Why no pool gets a node for an ask; "": none could serve it."""
        why = ""
        for view in self._pools.values():
            for type_, zone in _machines(view, view.zones):
                if not capacity_for(ask, view, type_, zone):
                    continue
                limit = self._limit(view, type_, hourly_price(view, type_, self._prices))
                if not view.record.is_open:
                    why = why or f"the pool {view.name} is drained"
                elif limit:
                    return f"the pool {view.name} is at {limit}"
                elif view.lacks(type_.name, zone, self._at):
                    why = why or f"the pool {view.name} has no capacity now: its provider has no {type_.name}"
                else:
                    why = why or f"the pool {view.name} gets further nodes soon"
        return why


def _machines(view: PoolView, zones: Sequence[str]) -> Iterator[tuple[MachineType, str]]:
    return ((type_, zone) for type_ in view.record.terms.types for zone in zones)
