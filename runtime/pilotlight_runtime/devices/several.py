"""All devices of a node as one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from pilotlight_core.model.messages import SliceReport
from pilotlight_runtime.devices.port import Access, Devices


class SeveralDevices:
    """The slices of all `kinds`, in that order."""

    def __init__(self, *kinds: Devices) -> None:
        """Raises ValueError if two kinds have a slice of the same id."""
        self._kinds = kinds
        self._of_slice = {part.id: kind for kind in kinds for part in kind.inventory()}
        if len(self._of_slice) < len(self.inventory()):
            raise ValueError("two slices of this node have the same id")

    def inventory(self) -> list[SliceReport]:
        return [part for kind in self._kinds for part in kind.inventory()]

    def withdrawn(self) -> Mapping[str, str]:
        return {slice_id: why for kind in self._kinds for slice_id, why in kind.withdrawn().items()}

    def access(self, slice_id: str) -> Access:
        return self._of_slice[slice_id].access(slice_id)

    async def watch(self, changed: Callable[[], None]) -> None:
        async with asyncio.TaskGroup() as group:
            for kind in self._kinds:
                group.create_task(kind.watch(changed))
