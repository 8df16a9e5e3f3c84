"""The policy: steps that decide between places, in the order of application, after `filters` have excluded devices.

A step of `STEPS` maps a candidate to a number, and the first step in which two candidates differ decides for the
smaller one: `value_of` is the sort key of these numbers. `place` finds the smallest by the index; a test checks that
this equals sorting all candidates by `value_of`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter, ne
from typing import Final

from pilotlight_core.model.placing import Over
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import NodeOccupancy
from pilotlight_placement.hardware.node import MAX_UNITS
from pilotlight_placement.search.candidate import Candidate, candidate_on
from pilotlight_placement.search.decision_record import Value
from pilotlight_placement.search.residency import lack_on

Key = Callable[[Candidate], int | float]
"""A term of a `Value`, whole where that is."""


@dataclass(frozen=True, kw_only=True)
class PolicyStep:
    """A rule between two candidates that are equal in all earlier steps: the one with the smaller key wins."""

    name: str
    sentence: str
    key_for: Callable[[Fleet, Ask], Key]
    """The key of candidates for an ask, as the fleet is now."""


def _crowding(fleet: Fleet, ask: Ask) -> Key:
    if ask.spread is None:
        return _none
    if ask.spread.over is Over.NODE:
        nodes = fleet.nodes_of(ask.function)
        return lambda at: nodes.get(at.rank // MAX_UNITS, 0)
    zones, by_rank = fleet.zones(ask.function), fleet.by_rank

    def in_zone(at: Candidate) -> int:
        domain = by_rank[at.rank // MAX_UNITS].node.domain
        return zones.get((domain.region, domain.zone), 0)

    return in_zone


def _lacking(fleet: Fleet, ask: Ask) -> Key:
    if not ask.resident:
        return _none
    lack = lack_on(fleet, ask)
    return lambda at: lack(at.rank // MAX_UNITS)


def _none(_: Candidate) -> int:
    return 0


def _always(key: Key) -> Callable[[Fleet, Ask], Key]:
    """A key of the candidate alone."""
    return lambda _, __: key


STEPS = (
    PolicyStep(
        name="preference",
        sentence="The GPU type that stands first in the function's list goes first.",
        key_for=_always(attrgetter("offer.option.choice")),
    ),
    PolicyStep(
        name="spread",
        sentence="The node or zone with the fewest containers of the function goes first.",
        key_for=_crowding,
    ),
    PolicyStep(
        name="resident",
        sentence="The node with most of the bytes goes first that the function loads: in memory, then on its disk.",
        key_for=_lacking,
    ),
    PolicyStep(
        name="cost",
        sentence="The slice with the lowest cost per throughput goes first; 5 % do not count.",
        key_for=_always(attrgetter("level")),
    ),
    PolicyStep(
        name="parked",
        sentence="A place for which nothing ends that is parked goes before one for which something does.",
        key_for=_always(attrgetter("parked")),
    ),
    PolicyStep(
        name="fragmentation",
        sentence="The place that strands least of what is typically asked for goes first.",
        key_for=_always(lambda at: at.key[0]),
    ),
    PolicyStep(
        name="fit",
        sentence="The device, or the node for whole devices and slots, with least left free goes first.",
        key_for=_always(lambda at: at.key[1]),
    ),
    PolicyStep(
        name="start",
        sentence="The highest start goes first, which keeps the lower half for large profiles.",
        key_for=_always(lambda at: at.key[2]),
    ),
    PolicyStep(
        name="cut",
        sentence="A MIG instance that exists and is idle goes before one that must be made first.",
        key_for=_always(attrgetter("cut")),
    ),
    PolicyStep(
        name="blank",
        sentence="A slice on which a blank of the base environment is ready goes before one without.",
        key_for=_always(attrgetter("cold")),
    ),
    PolicyStep(
        name="order",
        sentence="What is alike in all else is decided by a fixed order of nodes.",
        key_for=_always(attrgetter("rank")),
    ),
)
STEP_NAMES = tuple(step.name for step in STEPS)

_ALIKE: Final = tuple([step.key_for(Fleet(), Ask()) for step in STEPS])
"""The keys of an ask to which no node is nearer than another."""

if Value._fields != STEP_NAMES:
    raise RuntimeError(f"a value has other terms than the policy has steps: {Value._fields}, {STEP_NAMES}")


def keys_for(fleet: Fleet, ask: Ask) -> tuple[Key, ...]:
    """The keys of `STEPS` in their order, valid while the fleet is unchanged."""
    if ask.spread is None and not ask.resident:
        return _ALIKE
    return tuple([step.key_for(fleet, ask) for step in STEPS])


def value_of(keys: tuple[Key, ...], candidate: Candidate) -> Value:
    """The sort key of a candidate; `keys` are those of `keys_for`."""
    # `Value._make` takes thrice as long, several times in each decision.
    return tuple.__new__(Value, [key(candidate) for key in keys])


def first_difference(one: Value, other: Value) -> str:
    """The step that decides between two candidates; the last one if they are equal."""
    return next(compress(STEP_NAMES, map(ne, one, other)), STEP_NAMES[-1])


def best_on(fleet: Fleet, ask: Ask, node: NodeOccupancy) -> tuple[Value, Candidate] | None:
    """The best candidate on one node by `STEPS`, with its value; None if there is none. Filters are not applied."""
    found = (
        candidate
        for unit in node.units
        if unit.is_offered
        for offer in fleet.offers_in(ask, unit.group)
        if (candidate := candidate_on(offer, ask, unit)) is not None
    )
    keys = keys_for(fleet, ask)
    return min(((value_of(keys, candidate), candidate) for candidate in found), default=None)
