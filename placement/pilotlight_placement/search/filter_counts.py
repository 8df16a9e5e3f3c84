"""How many devices each filter excludes for an ask: from counts per group, without a pass over all devices."""

from __future__ import annotations

from collections.abc import Iterator

from pilotlight_core.model.placing import Over
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.offers import Offers, Totals, Zone
from pilotlight_placement.search.filters import FILTER_NAMES
from pilotlight_placement.search.open_units import open_units, open_units_on, serving_on
from pilotlight_placement.search.short_hosts import short_now
from pilotlight_placement.search.tiers import avoided_nodes

FilterCounts = tuple[tuple[str, int], ...]
"""(filter, devices and slots that it refuses and all earlier filters pass), in the order of the filters."""


def filter_counts(fleet: Fleet, ask: Ask, offers: Offers) -> tuple[FilterCounts, int]:
    """How many devices and slots each filter excludes, and the number of all."""
    totals, full = _totals(fleet, offers), _full_zones(fleet, ask)
    room = sum([numbers[index] for numbers, index in offers.counted])
    room += sum([open_units(offer.option, offer.groups, ask) for offer in offers.widest])
    shut = 0
    """Devices without room that an earlier filter than `room` counts."""
    crowded = 0
    for group, made in offers.by_group.items() if full else ():
        if (group.domain.region, group.domain.zone) in full:
            crowded += group.total
            shut += group.total - open_units(made[0].option, (group,), ask)
    by_name = dict(totals.refused)
    seen: set[int] = set()
    for name, ranks in _refused_nodes(fleet, ask):
        for group, made in offers.by_group.items():
            there = (ranks - seen if seen else ranks) & group.nodes
            if not there:
                continue
            out = serving_on(group, there)
            by_name[name] = by_name.get(name, 0) + out
            if (group.domain.region, group.domain.zone) in full:
                crowded -= out  # its zone counts them already, with their room
            else:
                shut += out - open_units_on(fleet, made, group, there, ask)
        seen |= ranks
    by_name["spread"] = by_name.get("spread", 0) + crowded
    by_name["room"] = totals.eligible - room - shut
    return tuple([(name, by_name[name]) for name in FILTER_NAMES if by_name.get(name)]), len(fleet.units)


def _refused_nodes(fleet: Fleet, ask: Ask) -> Iterator[tuple[str, set[int]]]:
    """The nodes (by rank) that each filter about single nodes excludes."""
    short = short_now(fleet, ask)
    if short.memory:
        yield "memory", short.memory
    if short.cpu:
        yield "cpu", short.cpu
    if avoided := avoided_nodes(fleet, ask):
        yield "avoid", avoided
    if ask.spread is not None and ask.spread.most is not None and ask.spread.over is Over.NODE:
        most = ask.spread.most
        yield "spread", {rank for rank, count in fleet.nodes_of(ask.function).items() if count >= most}


def _full_zones(fleet: Fleet, ask: Ask) -> set[Zone]:
    if ask.spread is None or ask.spread.most is None or ask.spread.over is not Over.ZONE:
        return set()
    most = ask.spread.most
    return {zone for zone, count in fleet.zones(ask.function).items() if count >= most}


def _totals(fleet: Fleet, offers: Offers) -> Totals:
    totals = offers.totals
    if totals.inventory != fleet.nodes.inventory:
        totals.inventory = fleet.nodes.inventory
        totals.eligible = sum(group.total for group in offers.by_group)
        totals.refused = {"draining": fleet.nodes.draining, "health": fleet.nodes.withdrawn}
        for group, refused in offers.why.items():
            totals.refused[refused.filter] = totals.refused.get(refused.filter, 0) + group.total
    return totals
