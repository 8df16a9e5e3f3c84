"""The planner: `plan(fleet, desired, at)` returns commands. It is pure; the fleet is unchanged.

1. Missing containers start on free places, the largest first.
2. Surplus ones stop; asks without a place are tried again on what that frees.
3. For the rest room is made: idle GPUs change MIG mode where that needs no reset, and containers move, each to a new
   place before it is stopped; all of a group, or none.
4. Where something is parked in the way of what starts, and no other place is as good, it is stopped first.
5. The least used devices are emptied onto others in use.

Containers on draining nodes are not counted, stopped or moved, and no container moves before its minimum residency.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from pilotlight_core.model.placing import Over
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import PlacedContainer
from pilotlight_placement.plan.commands import PlanCommand
from pilotlight_placement.plan.draft import (
    DesiredFunction,
    Draft,
    OtherFunctions,
    PlanLimits,
    PlanOutcome,
    none_else,
)
from pilotlight_placement.plan.mig_switches import instead_of_whole, switch_off, switch_on
from pilotlight_placement.plan.moves import empty_devices, make_room
from pilotlight_placement.plan.reservation import Reservation, reserve
from pilotlight_placement.search.decision_record import NoFit, Placement
from pilotlight_placement.search.place import place


@dataclass(frozen=True, kw_only=True)
class DesiredState:
    """The desired state; functions that are not named stay as they are, and are moved as `others` says.

    `revision` is part of container ids, `epoch` is the leader's. `starts` come first, in their order. `fixed`
    containers are not moved, and nothing is moved for `waiting` tenants. `kept` devices are for their ask only, until
    it is placed.
    """

    wants: tuple[DesiredFunction, ...]
    starts: tuple[tuple[Ask, int], ...] = ()
    revision: int = 0
    epoch: int = 0
    others: OtherFunctions = none_else
    fixed: Container[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    kept: Reservation | None = None


@dataclass(frozen=True, kw_only=True)
class Shortfall:
    """A function with missing containers, and the refusal of the first of them."""

    function: str
    missing: int
    refusal: NoFit


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Commands in a possible order of execution, the decisions behind them, and the remaining shortfalls."""

    commands: tuple[PlanCommand, ...]
    outcomes: tuple[PlanOutcome, ...]
    short: tuple[Shortfall, ...]


def plan(
    fleet: Fleet, desired: DesiredState, at: float, limits: PlanLimits | None = None, *, keep: bool = False
) -> Plan:
    """The commands from the present to the desired state; `at` is in seconds, on the clock of `PlacedContainer.since`.

    Args:
        keep: leave the fleet as it is after all commands, for one whose commands are carried out at once. What is
            decided is the same, but its records do not say what lost.

    Raises:
        ValueError: if a function is wanted twice, or has no name.
    """
    wants = {want.ask.function: want for want in desired.wants}
    if len(wants) != len(desired.wants) or "" in wants:
        raise ValueError("each function is wanted once, by its name")
    draft = Draft(
        fleet=fleet, wants=wants, at=at, revision=desired.revision, epoch=desired.epoch, limits=limits or PlanLimits(),
        others=desired.others, fixed=desired.fixed, waiting=desired.waiting, explain=not keep,
    )  # fmt: skip
    with fleet.trial() as trial:
        if keep:
            trial.keep()
        first, starts = _first(draft, desired)
        wanted = [(want.ask, _missing(fleet, want)) for want in by_size(wants.values())]
        missing = start_missing(draft, [*starts, *wanted])
        stop_surplus(draft)
        if missing and draft.stopped:
            missing = start_missing(draft, [(short.refusal.record.ask, short.missing) for short in missing])
        missing = [*first, *(after for short in missing if (after := _make_room_for(draft, short)).missing)]
        empty_devices(draft)
    outcomes = (*draft.outcomes, *(("", short.refusal) for short in missing))
    return Plan(commands=tuple(draft.commands), outcomes=outcomes, short=tuple(missing))


def _first(draft: Draft, desired: DesiredState) -> tuple[list[Shortfall], list[tuple[Ask, int]]]:
    """Start the ask of the reservation; its shortfalls, and the other starts."""
    kept = desired.kept
    if kept is None:
        return [], list(desired.starts)
    mine = [(ask, count) for ask, count in desired.starts if ask == kept.ask]
    short = [after for each in start_missing(draft, mine) if (after := _make_room_for(draft, each)).missing]
    if short or not mine:
        reserve(draft.fleet, kept)
    return short, [(ask, count) for ask, count in desired.starts if ask != kept.ask]


def by_size(wants: Iterable[DesiredFunction]) -> list[DesiredFunction]:
    """The largest first, while there is most choice."""

    def size(want: DesiredFunction) -> tuple[int, int, str]:
        count = max(choice.count for choice in want.ask.choices)
        return (-count, -want.ask.mib(count) if want.ask.vram else -(count > 1), want.ask.function)

    return sorted(wants, key=size)


def start_missing(draft: Draft, wanted: Sequence[tuple[Ask, int]]) -> list[Shortfall]:
    """Start what is wanted, in that order, an ask perhaps several times; the shortfall of each ask that has one."""
    short: dict[Ask, Shortfall] = {}
    for ask, count in wanted:
        if (known := short.get(ask)) is not None:  # nothing has gone since
            short[ask] = replace(known, missing=known.missing + count)
            continue
        for done in range(count):
            found = place(draft.fleet, ask, explain=draft.explain)
            if isinstance(found, NoFit):
                short[ask] = Shortfall(function=ask.function, missing=count - done, refusal=found)
                break
            _start(draft, ask, found)
    return list(short.values())


def _start(draft: Draft, ask: Ask, found: Placement) -> None:
    if not instead_of_whole(draft, ask, found):
        draft.start(ask, found, draft.new_group())


def living(fleet: Fleet, function: str) -> list[PlacedContainer]:
    every = fleet.functions.get(function, {}).values()
    return [held for held in every if not fleet.places[held.slice.node].node.draining]


def _missing(fleet: Fleet, want: DesiredFunction) -> int:
    return 0 if want.count is None else max(0, want.count - len(living(fleet, want.ask.function)))


def stop_surplus(draft: Draft) -> None:
    """Stop surplus containers: first where the function is most crowded, then on the emptiest device."""
    for function, want in sorted(draft.wants.items()):
        if want.count is None:
            continue
        there = living(draft.fleet, function)
        for _ in range(len(there) - want.count):
            least = min(there, key=lambda held: _keeping_value(draft.fleet, want, held))
            there.remove(least)
            draft.stop(least, f"{want.count} wanted, {len(there) + 1} there", draft.new_group())


def _keeping_value(fleet: Fleet, want: DesiredFunction, held: PlacedContainer) -> tuple[int, int, float, str]:
    """The sort key of surplus containers; the smallest is stopped first."""
    place, crowd = fleet.places[held.slice.node], 0
    if want.ask.spread is not None:
        domain = (place.node.domain.region, place.node.domain.zone)
        zone = fleet.zones(want.ask.function).get(domain, 0)
        crowd = fleet.nodes_of(want.ask.function)[place.rank] if want.ask.spread.over is Over.NODE else zone
    company = sum(len(place.by_id[name].held) - 1 for name in held.slice.ids)
    return (-crowd, company, -held.since, held.container)


def _make_room_for(draft: Draft, short: Shortfall) -> Shortfall:
    ask, missing = short.refusal.record.ask, short.missing
    while missing and draft.tries < draft.limits.blocked:
        draft.tries += 1
        switched = switch_off(draft, ask) or switch_on(draft, ask)
        if not (switched or (not short.refusal.never and make_room(draft, ask))):
            break
        missing -= 1
    return Shortfall(function=short.function, missing=missing, refusal=short.refusal)
