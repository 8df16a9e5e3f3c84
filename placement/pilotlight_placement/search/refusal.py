"""The refusal in words: what is in use, or why the fleet could never hold the ask."""

from __future__ import annotations

from collections.abc import Iterator

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.offers import Offers
from pilotlight_placement.search.decision_record import DecisionRecord, NoFit
from pilotlight_placement.search.diagnostics import (
    host_limits,
    missing_abilities,
    missing_memory,
    other_locations,
    unknown_types,
)
from pilotlight_placement.search.feasibility import Feasibility, feasibility
from pilotlight_placement.search.filters import RULED_OUT
from pilotlight_placement.search.open_units import serving_on
from pilotlight_placement.search.short_hosts import short_ever, short_now

NAMED_ELSEWHERE = (
    *("draining", "type", "room", "vram", "memory", "cpu", "region", "zone", "purchase"),
    *("base", "feature", "shm", "scratch", "pids"),
)


def no_fit(fleet: Fleet, ask: Ask, offers: Offers, record: DecisionRecord) -> NoFit:
    chance = feasibility(fleet, ask, offers)
    reason = (
        _in_use(fleet, ask, offers, record, chance) if chance.is_feasible else _infeasible(fleet, ask, offers, record)
    )
    return NoFit(reason=reason, never=not chance.is_feasible, record=record)


def _infeasible(fleet: Fleet, ask: Ask, offers: Offers, record: DecisionRecord) -> str:
    reason = f"it asks for {ask}, and the fleet has {fleet.describe()}"
    unknown = list(unknown_types(fleet, ask))
    if lack := missing_memory(ask, offers):
        return "; ".join((reason + lack, *unknown))
    parts = [*unknown, *other_locations(fleet, ask), *missing_abilities(fleet, ask)]
    parts += [f"{count} {RULED_OUT[name]}" for name, count in record.refused if name not in NAMED_ELSEWHERE]
    refused = dict(record.refused)
    parts += host_limits(fleet, ask, offers)
    if refused.get("room") and refused.keys() <= {"room", "count", "type", "draining"}:
        parts.insert(0, "no node has so many of them")
    return f"{reason}: {', '.join(parts)}" if parts else reason


def _in_use(fleet: Fleet, ask: Ask, offers: Offers, record: DecisionRecord, chance: Feasibility) -> str:
    refused, possible = dict(record.refused), chance.devices
    parts = list(_promised(fleet, ask, offers))
    others = {
        "avoid": "on nodes with functions that it avoids or that avoid it",
        "spread": "where it has as many containers as it may",
    }
    parts += [f"{refused[name]} {why}" for name, why in others.items() if refused.get(name)]
    taken = refused.get("room", 0)
    if possible <= 0 and chance.idle_to_switch:
        idle = f"{chance.idle_to_switch} {'is' if chance.idle_to_switch == 1 else 'are'} idle and can be switched"
        return f"the GPUs that could hold {ask} are in the other MIG mode: {chance.to_switch}, of which {idle}"
    if possible <= 0:
        return f"the GPUs that could hold {ask} are in use, in the other MIG mode"
    if not parts and possible == 1:
        return f"the only device or slot that could hold {ask} is in use"
    if not parts:
        return f"all {possible} devices and slots that could hold {ask} are in use"
    of = f"{possible} devices and slots" if possible > 1 else "1 device or slot"
    in_use = [f"{taken} {'is' if taken == 1 else 'are'} in use"] if taken else []
    return f"of {of} that could hold {ask}, {', '.join([*in_use, *parts])}"


def _promised(fleet: Fleet, ask: Ask, offers: Offers) -> Iterator[str]:
    """The devices on hosts that would hold the ask if less of them were promised."""
    now, ever = short_now(fleet, ask), short_ever(fleet, ask).either
    memory, cpu = now.memory - ever, now.cpu - now.memory - ever
    for ranks, what in ((memory, "memory is"), (cpu, "cores are")):
        if count := sum([serving_on(group, ranks & group.nodes) for group in offers.by_group]):
            yield f"{count} {'is' if count == 1 else 'are'} on hosts whose {what} promised to other containers"
