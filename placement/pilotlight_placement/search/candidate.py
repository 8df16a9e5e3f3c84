"""A `Candidate`: the place of an offer on one device, which the search compares, and its slice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup, rank_in
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.fleet.offers import Offer
from pilotlight_placement.fragmentation.place_costs import OpenedCosts, ShareCosts, SlotCosts, WholeCosts
from pilotlight_placement.fragmentation.scores import ScoreKey
from pilotlight_placement.hardware.node import Slice

NO_UNITS: Final[Mapping[int, list[int]]] = MappingProxyType({})


class Candidate(NamedTuple):
    """A place for an ask, ordered as `policy.STEPS` order places of equal preference and spread; no two are equal."""

    level: int
    parked: int
    """1 if something that is parked has to end for it."""
    key: ScoreKey
    cut: int
    """1 if its MIG instance must be created first."""
    cold: int
    """1 if no blank is ready there."""
    rank: int
    """Of its unit; of several whole devices, of the first."""
    serial: int
    offer: Offer
    start: int = 0


def candidate_on(offer: Offer, ask: Ask, unit: Unit) -> Candidate | None:
    """The best place of an offer on one device now; None if there is none."""
    option, group = offer.option, unit.group
    if option.profile >= 0:
        return _instance_on(offer, ask, unit)
    if option.units:
        return _share_on(offer, ask, unit)
    if not unit.is_empty:
        return None
    vacant = unit.node.vacant.get(group, [])
    if len(vacant) < option.count:
        return None
    parked, cold, rank = first_empty(unit.node, group, ask, option.count)
    if rank != unit.rank:
        return None
    key = empty_costs(offer, ask)[len(vacant), unit.node.room]
    return Candidate(offer.level, parked, key, 0, cold, rank, offer.serial, offer)


def first_empty(node: NodeOccupancy, group: DeviceGroup, ask: Ask, count: int) -> tuple[int, int, int]:
    """The empty device or slot of a group on a node that an ask for `count` of them gets.

    Whether something that is parked there has to end, whether no blank is ready there, and its rank. A `count` of 0 is
    for a share, for which there are no blanks. Of several devices the first is named.
    """
    vacant = node.vacant[group]
    if count > 1:
        return 0, 1, vacant[0]
    ready = group.ready.get(ask.base, NO_UNITS).get(node.rank) if count and group.ready else None
    if not (group.pinned and node.node.parked):
        return (0, 0, ready[0]) if ready else (0, 1, vacant[0])
    units, first = node.units, rank_in(node.rank, 0)
    return min(
        [
            (int(bool(units[rank - first].parked_beside(ask.tenant))), int(not ready or rank not in ready), rank)
            for rank in vacant
        ]
    )


def _instance_on(offer: Offer, ask: Ask, unit: Unit) -> Candidate | None:
    """On MIG instances: one that leaves alone what is parked, if there is one."""
    profile, group = offer.option.profile, unit.group
    masks = group.scores.masks
    if masks is None or (ask.media and unit.media):
        return None
    best = group.class_index.best(masks, profile, unit.mask)
    if best is not None and unit.parked:
        beside = unit.mask | unit.parked_mask(ask.tenant, profile)
        best = group.class_index.best(masks, profile, beside) or best
    if best is None:
        return None
    key, start = best
    cut = (profile, start)
    is_idle = cut in unit.idle
    return Candidate(
        offer.level,
        int(bool(unit.parked and unit.parked_beside(ask.tenant, profile, start))),
        key,
        int(not is_idle),
        int(not (is_idle and (cut, ask.base) in unit.ready)),
        unit.rank,
        offer.serial,
        offer,
        start,
    )


def has_room(unit: Unit, ask: Ask, offers: Iterable[Offer]) -> bool:
    """Whether a device has a place for one of the offers, alone or as one of several empty ones of its node."""
    return any(candidate_on(offer, ask, unit) is not None or _is_one_of_several(offer, unit) for offer in offers)


def empty_costs(offer: Offer, ask: Ask) -> WholeCosts | OpenedCosts | SlotCosts:
    """The keys of an offer's slots or empty devices, by the number of empty ones on the node, and the node's room."""
    group, option = offer.groups[0], offer.option
    if group.slot is not None:
        return group.class_index.slot_costs(group.scores_by_kind, ask.host)
    if option.units:
        return group.class_index.opened_costs(group.scores, option.units, ask.host)
    return group.class_index.whole_costs(group.scores, option.count, ask.host)


def shared_costs(offer: Offer, ask: Ask) -> ShareCosts:
    """The keys of an offer's devices that others share already, by what is free on them, and the node's room."""
    group = offer.groups[0]
    return group.class_index.share_costs(group.scores, offer.option.units, ask.host)


def slice_of(fleet: Fleet, found: Candidate) -> Slice:
    """The candidate's slice."""
    unit, option = fleet.units[found.rank], found.offer.option
    group, profile = unit.group, ""
    ids: tuple[str, ...] = (unit.id,)
    if option.profile >= 0 and group.device is not None:
        profile = group.device.cuts[option.profile].profile.key
    elif option.count > 1:
        ids = tuple(each.id for each in _linked_devices(fleet, unit.node, group, option.count))
    return Slice(
        node=unit.node.name,
        kind=option.kind,
        type=group.kind.name,
        ids=ids,
        memory=option.memory,
        ppm=group.slot.ppm if group.slot else option.ppm,
        profile=profile,
        start=found.start,
        units=option.units,
        slot=group.slot is not None,
    )


def _linked_devices(fleet: Fleet, node: NodeOccupancy, group: DeviceGroup, count: int) -> list[Unit]:
    """`count` empty devices of a node, in order: from the smallest link that has enough, if there is one."""
    units = [fleet.units[rank] for rank in node.vacant[group]]
    links: dict[str, list[Unit]] = {}
    for unit in units:
        if unit.gpu is not None and unit.gpu.link:
            links.setdefault(unit.gpu.link, []).append(unit)
    enough = [linked for linked in links.values() if len(linked) >= count > 1]
    return min(enough, key=lambda linked: (len(linked), linked[0].rank), default=units)[:count]


def _is_one_of_several(offer: Offer, unit: Unit) -> bool:
    vacant = unit.node.vacant.get(unit.group, ())
    return offer.option.profile < 0 and unit.is_empty and len(vacant) >= offer.option.count


def _share_on(offer: Offer, ask: Ask, unit: Unit) -> Candidate | None:
    parked = 0
    if unit.is_empty:
        vacant = unit.node.vacant.get(unit.group, [])
        if not vacant:
            return None
        parked, _, rank = first_empty(unit.node, unit.group, ask, 0)
        if rank != unit.rank:
            return None
        key = empty_costs(offer, ask)[len(vacant), unit.node.room]
    elif unit.free >= offer.option.units and unit.takes(ask.tenant, neighbours=ask.neighbours):
        key = shared_costs(offer, ask)[unit.free, unit.node.room]
        parked = int(bool(unit.parked and unit.parked_beside(ask.tenant)))
    else:
        return None
    return Candidate(offer.level, parked, key, 0, 1, unit.rank, offer.serial, offer)
