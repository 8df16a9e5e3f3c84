"""What a decision was, and what it was made of: enough to explain it later without the fleet as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.history import Trail
from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.hardware.node import Slice


class Value(NamedTuple):
    """A place in the terms of the policy's steps, in their order; smaller goes first in each."""

    preference: int
    spread: int
    resident: int
    """0 if the weights are there."""
    cost: int
    """In steps of 5 %."""
    fragmentation: float
    """The cost to later asks; only differences mean something."""
    fit: float
    """Left free, as part of the device; of 64 devices for whole ones."""
    start: int
    """The negative of the start; for a device that shares are opened on, its node's empty devices."""
    cut: int
    """1 if its MIG instance must be made first."""
    order: int
    """Rank."""


@dataclass(frozen=True, kw_only=True)
class Rival:
    """The best place that lost at a step: alike in all steps before it."""

    step: str
    slice: Slice
    value: Value


@dataclass(frozen=True, kw_only=True)
class DecisionRecord:
    """One decision. `revision` is the fleet's that stands; `trail` what a plan had done before, if it is of a plan."""

    ask: Ask
    revision: int
    value: Value | None = None
    """The winner's; None if there is none."""
    rivals: tuple[Rival, ...] = ()
    """In the order of the steps."""
    refused: tuple[tuple[str, int], ...] = ()
    """By filter: how many devices and slots it ruled out that passed all before it."""
    considered: int = 0
    """Devices and slots in all."""
    trail: Trail | None = None
    mix: Mapping[AskShape, float] = field(default_factory=dict)
    """The demand by which places were scored."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """A slice that was chosen."""

    slice: Slice
    record: DecisionRecord

    @property
    def node(self) -> str:
        return self.slice.node


@dataclass(frozen=True, kw_only=True)
class NoFit:
    """Why nothing was chosen. `never`: nothing in this fleet could hold it, even if all were free."""

    reason: str
    never: bool
    record: DecisionRecord
