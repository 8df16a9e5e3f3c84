"""The port of devices: what slices there are, and what a container on one of them must see of the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pilotlight_core.model.messages import SliceReport
from pilotlight_runtime.sandbox.profile import Mount


@dataclass(frozen=True, kw_only=True)
class Access:
    """What a sandbox needs for a slice: device nodes and files of the host, and variables for its code."""

    nodes: tuple[Path, ...] = ()
    read_only: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Set before its program starts, since the dynamic linker reads some of them only then."""


class Devices(Protocol):
    """The devices of one kind on this node."""

    def inventory(self) -> list[SliceReport]:
        """Every slice that there is, with ids that stay the same for as long as the hardware does.

        The list stays as it is for as long as the agent lives, since every slice in it is metered: what fails later is
        `withdrawn`.
        """
        ...

    def withdrawn(self) -> Mapping[str, str]:
        """The slices that take no new container at present, and why."""
        ...

    def access(self, slice_id: str) -> Access:
        """What a container on this slice must see; raises KeyError for a slice that is not of the inventory."""
        ...

    async def watch(self, changed: Callable[[], None]) -> None:
        """Look after them until cancelled, or return if there is nothing to look after.

        `changed` is called whenever `withdrawn` gives another answer than before.
        """
        ...
