"""Why there is no place: counts by filter, and the sentence that goes to whoever asked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from pilotlight_core.model.placing import Over
from pilotlight_placement.asks.ask import CPU, Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.offers import Offers, Totals, Zone
from pilotlight_placement.fleet.options import Option
from pilotlight_placement.search.decision_record import DecisionRecord, NoFit
from pilotlight_placement.search.feasibility import could_hold, idle_in_other_mode
from pilotlight_placement.search.obstacles import host_memory, other_locations, unknown_types
from pilotlight_placement.search.policy import FILTER_NAMES, RULED_OUT
from pilotlight_placement.search.search import joins

FilterCounts = tuple[tuple[str, int], ...]


def counts(fleet: Fleet, ask: Ask) -> tuple[FilterCounts, int]:
    """How many devices and slots each filter ruled out, in the order of the filters; and how many there are."""
    offers = fleet.offers(ask)
    totals = _totals(fleet, offers)
    room = sum([numbers[index] for numbers, index in offers.tallies])
    room += sum([open_units(offer.option, offer.cells, ask) for offer in offers.widest])
    by_name = totals.refused | {"room": totals.eligible - room}
    seen: set[int] = set()
    for name, ranks in out_of_bounds(fleet, ask):
        for rank in ranks - seen:
            out, shut = _on_node(fleet, ask, rank)
            by_name[name] = by_name.get(name, 0) + out
            by_name["room"] -= shut
        seen |= ranks
    if full := full_zones(fleet, ask):
        out, shut = _in_zones(fleet, ask, full, seen)
        by_name["spread"] = by_name.get("spread", 0) + out
        by_name["room"] -= shut
    found = tuple([(name, by_name[name]) for name in FILTER_NAMES if by_name.get(name)])
    return found, len(fleet.units)


def out_of_bounds(fleet: Fleet, ask: Ask) -> Iterator[tuple[str, set[int]]]:
    """The nodes (by rank, of those that take containers) that each filter about single nodes rules out."""

    def living(ranks: Iterable[int]) -> set[int]:
        return {rank for rank in ranks if not fleet.by_rank[rank].node.draining}

    if ask.memory and (short := bisect_left(fleet.hosts, (ask.memory, 0))):
        yield "host_memory", living(rank for _, rank in fleet.hosts[:short])
    if ask.avoid:
        yield "avoid", living(rank for function in ask.avoid for rank in fleet.nodes_of(function))
    if ask.spread is not None and ask.spread.most is not None and ask.spread.over is Over.NODE:
        most = ask.spread.most
        yield "spread", living(rank for rank, count in fleet.nodes_of(ask.function).items() if count >= most)


def full_zones(fleet: Fleet, ask: Ask) -> set[Zone]:
    """The zones that have as many of the function's containers as may be."""
    if ask.spread is None or ask.spread.most is None or ask.spread.over is not Over.ZONE:
        return set()
    most = ask.spread.most
    return {zone for zone, count in fleet.zones(ask.function).items() if count >= most}


def _on_node(fleet: Fleet, ask: Ask, rank: int) -> tuple[int, int]:
    """How many devices of a node would do for an ask, and how many of these have no room."""
    by_cell = fleet.offers(ask).by_cell
    units = [unit for unit in fleet.by_rank[rank].units if unit.cell in by_cell and unit.serves]
    return len(units), sum(not joins(unit, ask, by_cell[unit.cell]) for unit in units)


def _in_zones(fleet: Fleet, ask: Ask, zones: set[Zone], seen: set[int]) -> tuple[int, int]:
    """The same for whole zones, but for the nodes that were counted already."""
    out = shut = 0
    for cell, made in fleet.offers(ask).by_cell.items():
        if (cell.domain.region, cell.domain.zone) in zones:
            out += cell.total
            shut += cell.total - open_units(made[0].option, (cell,), ask)
    for rank in seen:
        domain = fleet.by_rank[rank].node.domain
        if (domain.region, domain.zone) in zones:
            out_before, shut_before = _on_node(fleet, ask, rank)
            out, shut = out - out_before, shut - shut_before
    return out, shut


def _totals(fleet: Fleet, offers: Offers) -> Totals:
    totals = offers.totals
    if totals.inventory != fleet.inventory:
        totals.inventory = fleet.inventory
        totals.eligible = sum(cell.total for cell in offers.by_cell)
        totals.refused = {"draining": fleet.draining, "health": fleet.withdrawn}
        for cell, refused in offers.why.items():
            totals.refused[refused.filter] = totals.refused.get(refused.filter, 0) + cell.total
    return totals


def open_units(option: Option, cells: Sequence[DeviceGroup], ask: Ask) -> int:
    """How many devices of some cells have a place for an option: of a cell's first offer, for any of its offers."""
    if option.count > 1:
        return sum([cell.vacant_units(option.count) for cell in cells])
    index = max(0, option.profile)
    whole = sum([cell.open[index] for cell in cells])
    return whole + sum([_open_shares(cell, option.units, ask) for cell in cells]) if option.units else whole


def _open_shares(cell: DeviceGroup, units: int, ask: Ask) -> int:
    pools = cell.pools(ask.tenant, neighbours=ask.neighbours)
    return sum([len(ranks) for pool in pools for free, ranks in pool.items() if free >= units])


def no_fit(fleet: Fleet, ask: Ask, record: DecisionRecord) -> NoFit:
    """The refusal in a sentence."""
    possible = fleet.offers(ask).totals.eligible
    short = dict(record.refused).get("host_memory", 0)
    single = all(choice.count == 1 for choice in ask.choices)
    if (possible > short and single) or could_hold(fleet, ask):
        return NoFit(reason=_busy(fleet, ask, record, possible - short), never=False, record=record)
    return NoFit(reason=never_reason(fleet, ask, record), never=True, record=record)


def never_reason(fleet: Fleet, ask: Ask, record: DecisionRecord) -> str:
    """Why nothing in the fleet could hold it, even if all were free: what there is, and what is missing."""
    reason = f"it asks for {ask}, and the fleet has {fleet.describe()}"
    unknown = list(unknown_types(fleet, ask))
    if said := missing(fleet, ask):
        return "; ".join((reason + said, *unknown))
    silent = ("draining", "type", "room", "vram", "host_memory", "region", "zone", "purchase")
    parts = [*unknown, *other_locations(fleet, ask)]
    parts += [f"{count} {RULED_OUT[name]}" for name, count in record.refused if name not in silent]
    refused = dict(record.refused)
    if refused.get("host_memory") and (short := host_memory(fleet, ask)):
        parts.append(short)
    if refused.get("room") and refused.keys() <= {"room", "count", "type", "draining"}:
        parts.insert(0, "no node has so many of them")
    return f"{reason}: {', '.join(parts)}" if parts else reason


def _busy(fleet: Fleet, ask: Ask, record: DecisionRecord, possible: int) -> str:
    refused = dict(record.refused)
    others = {"avoid": "on nodes it avoids", "spread": "where it has as many containers as it may"}
    parts = [f"{refused[name]} {why}" for name, why in others.items() if refused.get(name)]
    taken = refused.get("room", 0)
    if possible <= 0:
        idle, total = idle_in_other_mode(fleet, ask)
        if idle:
            said = f"of which {idle} {'is' if idle == 1 else 'are'} idle and can be switched"
            return f"the GPUs that could hold {ask} are in the other MIG mode: {total}, {said}"
        return f"the GPUs that could hold {ask} are in use, in the other MIG mode"
    if not parts and possible == 1:
        return f"the only device or slot that could hold {ask} is in use"
    if not parts:
        return f"all {possible} devices and slots that could hold {ask} are in use"
    of = f"{possible} devices and slots" if possible > 1 else "1 device or slot"
    return f"of {of} that could hold {ask}, {taken} {'is' if taken == 1 else 'are'} in use, {', '.join(parts)}"


def missing(fleet: Fleet, ask: Ask) -> str:
    """What the largest slice lacks that is of a type asked for; "" where memory is not what is missing."""
    if ask.choices[0].type == CPU:
        return ""
    largest = [
        (refused.largest, cell)
        for cell, refused in fleet.offers(ask).why.items()
        if refused.filter == "vram" and cell.total
    ]
    if not largest:
        return ""
    mib, cell = max(largest, key=lambda pair: (pair[0], pair[1].kind.order, pair[1].domain))
    if not ask.vram:
        return ": nothing says how much memory it needs, so only a whole device would do (declare vram=)"
    need = min(ask.mib(choice.count) for choice in ask.choices)
    return (
        f"; the largest slice that exists is {_largest(cell)} with {mib / 1024:.1f} GiB: "
        f"{(need - mib) / 1024:.1f} GiB are missing"
    )


def _largest(cell: DeviceGroup) -> str:
    if cell.slot is not None:
        return f"a {cell.slot.kind.value} slice of {cell.kind.name}"
    if cell.kind.mig and cell.device is not None:
        cut = max(cell.device.cuts, key=lambda cut: (cut.memory, -cut.profile.index))
        return f"{cut.name} of {cell.kind.name}"
    return f"a whole {cell.kind.name}"
