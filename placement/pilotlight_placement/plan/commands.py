"""What a plan tells the world to do. Each command says by number which others must be done before it.

`Start` is done when the container is ready, `Stop` when it is gone, so a move is: start the copy, stop the original
after it (make before break). Commands of one `group` belong together: if one cannot be done, the later ones are not.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_placement.hardware.geometry import Layout
from pilotlight_placement.hardware.node import Held


@dataclass(frozen=True, kw_only=True)
class Command:
    """The base: its number in the plan, what must be done before, and what it belongs to."""

    number: int
    group: int
    after: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Start(Command):
    """Start a container on a slice; `replaces` is the one that it is a copy of, if it is moved."""

    held: Held
    replaces: str = ""


@dataclass(frozen=True, kw_only=True)
class Stop(Command):
    """Drain a container and let it go."""

    container: str
    node: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Cut(Command):
    """Destroy idle MIG instances of a GPU and create others; those in use are not touched."""

    node: str
    gpu: str
    destroy: Layout
    create: Layout


@dataclass(frozen=True, kw_only=True)
class SwitchMig(Command):
    """Switch the MIG mode of an idle GPU: only where that needs no reset."""

    node: str
    gpu: str
    on: bool


AnyCommand = Start | Stop | Cut | SwitchMig
