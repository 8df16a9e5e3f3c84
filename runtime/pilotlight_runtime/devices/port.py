"""The port of devices: what slices there are, and what a container on one of them must see of the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pilotlight_core.model.messages import SliceReport


@dataclass(frozen=True, kw_only=True)
class Access:
    """What a sandbox needs for a slice: device nodes of the host, and variables for its code."""

    nodes: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


class Devices(Protocol):
    """The devices of one kind on this node."""

    def inventory(self) -> list[SliceReport]:
        """Every slice that can be offered, with ids that stay the same for as long as the hardware does."""
        ...

    def access(self, slice_id: str) -> Access:
        """What a container on this slice must see; raises KeyError for a slice that is not of the inventory."""
        ...
