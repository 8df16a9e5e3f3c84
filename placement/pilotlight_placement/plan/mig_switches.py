"""Switches of the MIG mode of idle GPUs: on if an instance is cheaper or required, off if whole GPUs are missing.

Only where the switch needs no reset: on Ampere a reset would disconnect every client of the driver.
"""

from __future__ import annotations

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_core.model.spec import Isolation
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup, node_rank
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import Unit
from pilotlight_placement.hardware.node import Slice
from pilotlight_placement.plan.draft import Draft, PlanLimits
from pilotlight_placement.search.decision_record import Placement
from pilotlight_placement.search.feasibility import idle_in_other_mode
from pilotlight_placement.search.place import place


def instead_of_whole(draft: Draft, ask: Ask, found: Placement) -> bool:
    """Switch an idle GPU to MIG mode instead of using it whole, if an instance of it costs less."""
    if draft.switched >= draft.limits.switches or not _is_too_much(draft, ask, found):
        return False
    node, gpu = found.slice.node, found.slice.ids[0]
    with draft.attempt() as attempt:
        group = draft.new_group()
        draft.switch(node, gpu, group, on=True)
        again = place(draft.fleet, ask)
        if isinstance(again, Placement) and again.slice.ids == (gpu,) and again.slice.profile:
            draft.start(ask, again, group)
            attempt.keep()
    return attempt.kept


def _is_too_much(draft: Draft, ask: Ask, found: Placement) -> bool:
    chosen: Slice = found.slice
    if chosen.kind is not SliceKind.GPU or chosen.slot or len(chosen.ids) != 1:
        return False
    if not ask.vram or ask.isolation is Isolation.EXCLUSIVE:
        return False
    unit = draft.fleet.places[chosen.node].by_id[chosen.ids[0]]
    device, value = unit.group.device, found.record.value
    if unit.parked or device is None or not device.online_mig or value is None:
        return False
    price = draft.fleet.prices.of(device, unit.group.domain)
    parts = draft.fleet.offers(ask).switched(unit.group)
    return min((part.level(price) for part in parts), default=value.cost) < value.cost


def has_place_after_switch(fleet: Fleet, ask: Ask) -> bool:
    """Whether a refused ask would get a place if idle GPUs changed their mode. The fleet is unchanged."""
    if not idle_in_other_mode(fleet, ask):
        return False
    draft = Draft(fleet=fleet, wants={}, at=0.0, revision=0, limits=PlanLimits())
    with fleet.trial():
        return switch_off(draft, ask) or switch_on(draft, ask)


def switch_on(draft: Draft, ask: Ask) -> bool:
    """Put one idle GPU into MIG mode, if the ask then has a place on an instance."""
    for group in _in_order(draft):
        if group.kind.mig or not draft.fleet.offers(ask).switched(group):
            continue
        nodes = sorted(rank for ranks in group.vacant.values() for rank in ranks)[: draft.limits.donors]
        units, by_rank = draft.fleet.units, draft.fleet.by_rank
        idle = [min([units[each] for each in by_rank[rank].vacant[group]], key=_is_pinned) for rank in nodes]
        idle.sort(key=_is_pinned)
        if draft.switched < draft.limits.switches and any(_switched(draft, ask, [unit], on=True) for unit in idle):
            return True
    return False


def switch_off(draft: Draft, ask: Ask) -> bool:
    """Take idle GPUs of one node out of MIG mode, if the ask then has the whole ones that it needs."""
    for group in _in_order(draft):
        for units in _idle(draft, ask, group):
            if draft.switched + len(units) <= draft.limits.switches and _switched(draft, ask, units, on=False):
                return True
    return False


def _is_pinned(unit: Unit) -> bool:
    """Whether something that is parked would have to end for a switch."""
    return bool(unit.parked)


def _in_order(draft: Draft) -> list[DeviceGroup]:
    return sorted(draft.fleet.groups.values(), key=lambda group: (group.kind.order, group.domain))


def _switched(draft: Draft, ask: Ask, units: list[Unit], *, on: bool) -> bool:
    names = [(unit.node.name, unit.id) for unit in units]
    with draft.attempt() as attempt:
        group = draft.new_group()
        for node, gpu in names:
            draft.switch(node, gpu, group, on=on)
        found = place(draft.fleet, ask)
        if isinstance(found, Placement):
            draft.start(ask, found, group)
            attempt.keep()
    return attempt.kept


def _idle(draft: Draft, ask: Ask, group: DeviceGroup) -> list[list[Unit]]:
    """The idle MIG GPUs to switch off on each node so that it has enough whole ones; fewest first."""
    wholes = draft.fleet.offers(ask).switched(group)
    if not group.kind.mig or not wholes:
        return []
    count = min(option.count for option in wholes)
    by_node: dict[int, list[Unit]] = {}
    for rank in group.states.get(0, ()):
        by_node.setdefault(node_rank(rank), []).append(draft.fleet.units[rank])
    found = []
    for units in by_node.values():
        place = units[0].node
        vacant = max(
            (len(ranks) for other, ranks in place.vacant.items() if other.kind.name == group.kind.name), default=0
        )
        if vacant < count <= vacant + len(units):
            found.append(sorted(units, key=_is_pinned)[: count - vacant])
    return sorted(found, key=lambda units: (sum(map(_is_pinned, units)), len(units), units[0].rank))[
        : draft.limits.donors
    ]
