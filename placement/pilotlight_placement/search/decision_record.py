"""The result of a decision, with enough of its input to explain it later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.history import Trail
from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.hardware.node import PlacedContainer, Slice


class Value(NamedTuple):
    """A place's terms in the order of the policy's steps; smaller is better in each."""

    preference: int
    spread: int
    resident: int
    """What its node lacks of what the ask loads, in steps of loading; 0 if all of it is in memory there."""
    cost: int
    """In steps of 5 %."""
    parked: int
    """1 if something that is parked has to end for it."""
    fragmentation: float
    """The cost to later asks; only differences are meaningful."""
    fit: float
    """What stays free, as part of a MIG device; of whole devices, as part of 64. 1 if a share begins an empty one."""
    start: int
    """The negative of a MIG instance's start; otherwise 0."""
    cut: int
    """1 if its MIG instance must be created first."""
    blank: int
    """0 if a blank is ready there."""
    order: int


@dataclass(frozen=True, kw_only=True)
class Rival:
    """The best place that lost at a step, equal in all earlier steps."""

    step: str
    slice: Slice
    value: Value


@dataclass(frozen=True, kw_only=True)
class DecisionRecord:
    """One decision. `revision` is the fleet's, without trials; `trail` has the earlier changes of its plan, if any."""

    ask: Ask
    revision: int
    value: Value | None = None
    rivals: tuple[Rival, ...] = ()
    refused: tuple[tuple[str, int], ...] = ()
    """By filter: the devices and slots that it excluded and that passed all earlier ones."""
    considered: int = 0
    trail: Trail | None = None
    mix: Mapping[AskShape, float] = field(default_factory=dict)
    """The demand by which places were scored."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    slice: Slice
    record: DecisionRecord

    @property
    def node(self) -> str:
        return self.slice.node

    def held(self, container: str, *, since: float = 0.0) -> PlacedContainer:
        """The container at this place, with what is promised to it."""
        ask = self.record.ask
        return PlacedContainer(
            container=container,
            slice=self.slice,
            function=ask.function,
            tenant=ask.tenant,
            since=since,
            neighbours=ask.neighbours,
            host=ask.host,
            avoid=ask.avoid,
        )


@dataclass(frozen=True, kw_only=True)
class NoFit:
    """A refusal. `never`: the fleet could not hold it, even if it were all free.

    `by_limit`: a limit of the tenant allows it nowhere; no place was sought.
    """

    reason: str
    never: bool
    record: DecisionRecord
    by_limit: bool = False
