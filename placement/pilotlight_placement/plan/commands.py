"""What a plan tells the world to do. Each command says by number which others must be done before it.

`PlannedStart` is done when the container is ready, `PlannedStop` when it is gone, so a move is: start the copy, stop
the original after it (make before break). Commands of one `group` belong together: if one fails, the later ones
are not done.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_placement.hardware.geometry import Layout
from pilotlight_placement.hardware.node import PlacedContainer


@dataclass(frozen=True, kw_only=True)
class PlannedCommand:
    """The base: its number in the plan, what must be done before, and what it belongs to."""

    number: int
    group: int
    after: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlannedStart(PlannedCommand):
    """Start a container on a slice; `replaces` is the one that it is a copy of, if it is moved."""

    held: PlacedContainer
    replaces: str = ""


@dataclass(frozen=True, kw_only=True)
class PlannedStop(PlannedCommand):
    """Drain a container and let it go."""

    container: str
    node: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class PlannedCut(PlannedCommand):
    """Destroy idle MIG instances of a GPU and create others; those in use are not touched."""

    node: str
    gpu: str
    destroy: Layout
    create: Layout


@dataclass(frozen=True, kw_only=True)
class PlannedMigSwitch(PlannedCommand):
    """Switch the MIG mode of an idle GPU: only where that needs no reset."""

    node: str
    gpu: str
    on: bool


AnyPlannedCommand = PlannedStart | PlannedStop | PlannedCut | PlannedMigSwitch
