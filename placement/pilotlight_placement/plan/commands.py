"""The commands of a plan, each with the numbers of the commands that must be done before it.

`Stop`, `Cut` and `SwitchMig` are messages; `PlannedStart` is the plan's own, since a start has no version and id yet. A
start is done when the container is ready, a stop when it is gone: a move starts the copy, then stops the original. If a
command fails, the later ones of its `group` are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.node_messages import Stop
from pilotlight_placement.hardware.node import PlacedContainer

CommandT_co = TypeVar("CommandT_co", covariant=True)


@dataclass(frozen=True, kw_only=True)
class PlannedStart:
    """Start a container on a slice; `replaces` is the container that is moved, if any."""

    held: PlacedContainer
    replaces: str = ""


@dataclass(frozen=True, kw_only=True)
class PlannedCommand(Generic[CommandT_co]):
    """A command to a node, with its number in the plan, the commands that must be done before, and its group."""

    number: int
    group: int
    after: tuple[int, ...] = ()
    node: str
    command: CommandT_co


PlanCommand = PlannedCommand[PlannedStart | Stop | Cut | SwitchMig]
