"""Moves of containers: to make room for a blocked ask, and to empty the least used devices.

Make before break: each victim's copy starts elsewhere first, and the victim stops when the copy is ready. All of a
group move or none, as in KAI's consolidation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.occupancy import Unit
from pilotlight_placement.fleet.offers import Offer
from pilotlight_placement.hardware.node import SHARE_UNITS, PlacedContainer
from pilotlight_placement.plan.draft import Draft
from pilotlight_placement.search.decision_record import Placement
from pilotlight_placement.search.place import place


@dataclass(frozen=True, kw_only=True)
class Eviction:
    """Containers to move off some devices of one node, and the cost in seconds of loading."""

    units: tuple[Unit, ...]
    victims: tuple[PlacedContainer, ...]
    cost_s: float


def make_room(draft: Draft, ask: Ask) -> bool:
    """Move the cheapest set of containers away so that the ask has a place, and start it there; never for a trial."""
    if ask.slice or ask.tenant in draft.waiting:
        return False
    offers = [offer for choice in draft.fleet.offers(ask).choices for _, made in choice.levels for offer in made]
    found = [each for offer in offers for each in _evictions(draft, offer)]
    found.sort(key=lambda each: (each.cost_s, len(each.victims), each.units[0].rank))
    return any(_made_room(draft, ask, each) for each in found[: draft.limits.donors])


def _made_room(draft: Draft, ask: Ask, eviction: Eviction) -> bool:
    with draft.attempt() as attempt:
        group = draft.new_group()
        if _moved(draft, eviction, group, f"makes room for {ask.function}"):
            found = place(draft.fleet, ask)
            if isinstance(found, Placement):
                draft.start(ask, found, group)
                attempt.keep()
    return attempt.kept


def empty_devices(draft: Draft) -> None:
    """Empty a few of the least used devices, if their containers fit on other devices in use."""
    left = draft.limits.empties
    for eviction in _least_used(draft) if left else ():
        with draft.attempt() as attempt:
            if _moved(draft, eviction, draft.new_group(), "its device is being emptied", only_used=True):
                attempt.keep()
        left -= attempt.kept
        if not left:
            return


def _moved(draft: Draft, eviction: Eviction, group: int, reason: str, *, only_used: bool = False) -> bool:
    """Start a copy of each victim elsewhere, then stop the victims."""
    copies: list[tuple[PlacedContainer, PlacedContainer]] = []
    numbers: list[int] = []
    with draft.fleet.without(eviction.units):
        for victim in eviction.victims:
            want = draft.want(victim.function)
            if want is None:
                return False
            ask = want.ask
            found = place(draft.fleet, ask)
            if not isinstance(found, Placement) or (only_used and not _is_worth_it(draft, found)):
                return False
            copy = draft.start(ask, found, group, replaces=victim.container)
            copies.append((victim, copy))
            numbers.append(len(draft.commands) - 1)
    for victim, copy in copies:
        # All copies: if one of them fails, no victim was stopped in vain.
        draft.stop(victim, reason, group, after=tuple(numbers))
        draft.moved |= {victim.container, copy.container}
    return True


def _is_worth_it(draft: Draft, found: Placement) -> bool:
    """Whether a place is on devices in use, and nothing ends for it that is parked."""
    value = found.record.value
    return _is_used(draft, found) and value is not None and not value.parked


def _is_used(draft: Draft, found: Placement) -> bool:
    units = draft.fleet.places[found.slice.node].by_id
    return all(units[name].held for name in found.slice.ids)


def movable(draft: Draft, held: PlacedContainer) -> bool:
    """Whether a container may be moved: it is known, old enough, not moved already, and its node does not drain."""
    may_go = (
        draft.at - held.since >= draft.limits.min_residency_s
        and held.container not in draft.moved
        and held.container not in draft.fixed
        and not draft.fleet.places[held.slice.node].node.draining
    )
    return may_go and (want := draft.want(held.function)) is not None and want.movable  # that is dear to know


def _eviction(draft: Draft, units: Sequence[Unit], victims: Sequence[PlacedContainer]) -> Eviction | None:
    room = draft.limits.moves - len(draft.moved) // 2
    if not victims or len(victims) > room or not all(movable(draft, held) for held in victims):
        return None
    cost = sum([want.load_s for held in victims if (want := draft.want(held.function)) is not None])
    if cost > draft.limits.move_s:
        return None
    victims = sorted(victims, key=lambda held: (-held.slice.memory, held.container))
    return Eviction(units=tuple(units), victims=tuple(victims), cost_s=cost)


def _evictions(draft: Draft, offer: Offer) -> Iterator[Eviction]:
    """Evictions that would make a place for the offer, on the devices with the least in the way."""
    if offer.option.profile >= 0:
        candidates = _windows(draft, offer)
    elif offer.groups[0].slot is not None:
        candidates = (slots for group in offer.groups for slots in _slots(draft, group))
    else:
        candidates = _nodes(draft, offer)
    for units in islice(candidates, draft.limits.donors):
        if (eviction := _clear(draft, offer, units)) is not None:
            yield eviction


def _clear(draft: Draft, offer: Offer, units: Sequence[Unit]) -> Eviction | None:
    family = units[0].gpu.device.family if units[0].gpu else None
    if offer.option.profile < 0 or family is None:
        victims = {held.container: held for unit in units for held in unit.held.values()}
        return _eviction(draft, units, list(victims.values()))
    profile = family.profiles[offer.option.profile]
    ways = []
    for mask in profile.masks:
        if mask & units[0].recut:
            continue
        inside = [
            held for held in units[0].held.values() if family.by_key[held.slice.profile].mask(held.slice.start) & mask
        ]
        if (way := _eviction(draft, units, inside)) is not None:
            ways.append(way)
    return min(ways, key=lambda way: (way.cost_s, len(way.victims)), default=None)


def _windows(draft: Draft, offer: Offer) -> Iterator[tuple[Unit, ...]]:
    """MIG devices, by how few of their slices would have to be cleared."""
    family = offer.groups[0].device.family if offer.groups[0].device else None
    if family is None:
        return
    masks = family.profiles[offer.option.profile].masks
    ways = [
        (min((mask & window).bit_count() for window in masks), mask, number)
        for number, group in enumerate(offer.groups)
        for mask in group.states
    ]
    for _, mask, number in sorted(ways):
        for rank in offer.groups[number].states[mask]:
            yield (draft.fleet.units[rank],)


def _nodes(draft: Draft, offer: Offer) -> Iterator[tuple[Unit, ...]]:
    count = offer.option.count
    for group in offer.groups:
        nodes = [draft.fleet.by_rank[rank] for rank in group.nodes]
        nodes.sort(key=lambda node: (-len(node.vacant.get(group, ())), node.rank))
        for node in nodes[: draft.limits.donors]:
            used = [unit for unit in node.by_group[group] if unit.held and unit.is_offered]
            used.sort(key=lambda unit: (-unit.free, len(unit.held), unit.rank))
            missing = count - len(node.vacant.get(group, ()))
            if 0 < missing <= len(used):
                yield tuple(used[:missing])


def _slots(draft: Draft, group: DeviceGroup) -> Iterator[tuple[Unit, ...]]:
    for rank in sorted(group.nodes):
        yield from ((unit,) for unit in draft.fleet.by_rank[rank].by_group[group] if unit.held)


def _least_used(draft: Draft) -> Iterator[Eviction]:
    ways: list[tuple[float, int, Unit]] = []
    for group in draft.fleet.groups.values():
        if group.device is None:
            continue
        slots = group.device.family.slots if group.device.family else 1
        states = group.states if group.kind.mig else {}
        ways += [(m.bit_count() / slots, r, draft.fleet.units[r]) for m, ranks in states.items() if m for r in ranks]
        for pool in group.shared.values():
            ways += [(1 - s[0] / SHARE_UNITS, r, draft.fleet.units[r]) for s, ranks in pool.items() for r in ranks]
    for used, _, unit in nsmallest(draft.limits.donors, ways, key=lambda way: way[:2]):
        eviction = _eviction(draft, (unit,), list(unit.held.values()))
        # A moving container holds two places: that must cost less than the emptied device is worth.
        if eviction is not None and eviction.cost_s * used < draft.limits.horizon_s:
            yield eviction
