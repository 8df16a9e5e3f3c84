"""The scarcity of device models: the load on each if all demand is spread as evenly as possible.

Demand that accepts several models goes where there is room, so a model's load follows from the sets of models that some
demand must use. The most loaded set is the one with the most demand of its own for its room; without it and its demand
the next one is found in the same way (a polymatroid's densest sets, Fujishige, Mathematics of Operations Research 5(2),
1980).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

STEEPNESS = 6.0
"""Price per unit of load above the least loaded model. 3 to 10 do as well."""
DEAREST = 10.0
"""Bound of a price, which is infinite for a model without room."""
MAX_SETS = 128
"""Sets that are compared, those of the heaviest demand first."""


@dataclass(frozen=True, kw_only=True)
class ModelClaims:
    """Demand by the set of models that it accepts, as bit masks over `models`, and the unions of such sets."""

    models: tuple[str, ...]
    demand: tuple[tuple[int, float], ...]
    """Mask of models -> demand; the mask of all models for demand that accepts any."""
    unions: tuple[int, ...]

    @property
    def everything(self) -> int:
        return (1 << len(self.models)) - 1


def claims(models: Sequence[str], demand: Mapping[frozenset[str], float]) -> ModelClaims:
    """The claims of the demand (an empty set: any model), without what none of the models could meet."""
    bits = {model: 1 << number for number, model in enumerate(models)}
    everything = (1 << len(bits)) - 1
    merged: dict[int, float] = {}
    for accepted, amount in demand.items():
        mask = sum(bits.get(model, 0) for model in accepted) if accepted else everything
        if mask:
            merged[mask] = merged.get(mask, 0.0) + amount
    heaviest = sorted(merged.items(), key=lambda item: (-item[1], item[0]))
    unions = {0}
    for mask, _ in heaviest:
        if 2 * len(unions) <= MAX_SETS:
            unions |= {mask | union for union in unions}
    unions = (unions | {everything}) - {0}
    return ModelClaims(models=tuple(models), demand=tuple(heaviest), unions=tuple(sorted(unions)))


def loads(claimed: ModelClaims, room: Mapping[str, float]) -> dict[str, float]:
    """The load of each model: its part of the demand over its part of the room (any unit), both with 1 added."""
    rooms = [room.get(model, 0.0) for model in claimed.models]
    scale = (sum(rooms) + 1.0) / (sum(amount for _, amount in claimed.demand) or 1.0)
    found: dict[str, float] = {}
    done = 0
    while done != claimed.everything:
        groups = {union & ~done for union in claimed.unions} - {0}
        load, _, densest = max(_load(claimed, group, done, rooms) for group in groups)
        found |= {model: load * scale for number, model in enumerate(claimed.models) if densest >> number & 1}
        done |= densest
    return found


def prices(claimed: ModelClaims, room: Mapping[str, float]) -> dict[str, float]:
    """The premium on the worth of each model's room, as a part of it; 0 for the least loaded model."""
    if len(claimed.demand) <= 1:
        return dict.fromkeys(claimed.models, 0.0)
    found = loads(claimed, room)
    least = min(found.values())
    return {model: min(DEAREST, STEEPNESS * (load - least)) for model, load in found.items()}


def _load(claimed: ModelClaims, group: int, done: int, rooms: Sequence[float]) -> tuple[float, int, int]:
    """Load of a group of models by the demand that nothing else can meet, and its size: ties take the larger."""
    own = sum(amount for mask, amount in claimed.demand if mask & ~done and not mask & ~done & ~group)
    space = sum(amount for number, amount in enumerate(rooms) if group >> number & 1)
    return round(own / (space + 1.0), 12), group.bit_count(), group
