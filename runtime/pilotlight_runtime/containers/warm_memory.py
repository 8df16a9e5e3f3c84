"""The host memory of a node for what may be needed again soon: parked containers, and weights that nobody has loaded.

Both have one budget (`core.model.scaling.warm_things`).
"""

from __future__ import annotations

from pilotlight_core.model.messages.node_messages import HostMemory
from pilotlight_core.model.scaling.warm_things import WarmKind, WarmThings


class WarmMemory(WarmThings):
    @property
    def report(self) -> HostMemory:
        return HostMemory(total=self.total, parked=self.taken(WarmKind.PARKED), cached=self.taken(WarmKind.CACHED))

    def check_integrity(self, parked: set[str]) -> None:
        """Raise AssertionError if more is kept than fits, or another container than those that are `parked`."""
        if self.taken() > self.total:
            raise AssertionError(f"{self.taken()} bytes are kept in {self.total}")
        kept = self.names(WarmKind.PARKED)
        if kept != parked:
            raise AssertionError(f"memory is kept for {kept}, parked are {parked}")
