"""The port of devices: what slices there are, and what a container on one of them must see of the host."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pilotlight_core.model.devices import DeviceReport, GpuLayout, SliceName
from pilotlight_core.model.messages.agent_messages import SliceReport
from pilotlight_core.model.messages.device_commands import DeviceCommand
from pilotlight_runtime.sandbox.sandbox_spec import Mount


@dataclass(frozen=True, kw_only=True)
class DeviceAccess:
    """What a sandbox needs for a slice: device nodes and files of the host, and variables for its code."""

    nodes: tuple[Path, ...] = ()
    read_only: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Set before its program starts, since the dynamic linker reads some of them only then."""


class Devices(Protocol):
    """The devices of one kind on this node."""

    def inventory(self) -> list[SliceReport]:
        """Every slice that can be bound as it is; of each device they are all of it, or less.

        It changes when a GPU is cut. What fails stays in it, and is `withdrawn`.
        """
        ...

    def part(self, name: SliceName) -> SliceReport | None:
        """The slice of this name, a share of a device too; None if there is none at present."""
        ...

    def withdrawn(self) -> Mapping[str, str]:
        """The devices and slices that take no new container at present, and why."""
        ...

    def access(self, slice_id: str) -> DeviceAccess:
        """What a container on this slice must see; raises LookupError for a slice that is not there."""
        ...

    def reports(self, on: Mapping[str, str], /) -> list[DeviceReport]:
        """Its GPUs, with who is `on` which slice."""
        ...

    def command(self, command: DeviceCommand, busy: Collection[str], /) -> str:
        """Begin to cut a device, or say why not ("" is yes); `busy` are the ids of its slices that are in use."""
        ...

    def layouts(self) -> Mapping[str, GpuLayout]:
        """How GPUs are cut now, by UUID, of those that can be and are not being cut at this moment."""
        ...

    async def restore(self, layouts: Mapping[str, GpuLayout], /) -> None:
        """Cut GPUs that are not cut as they were before the host was started anew; for before anything is bound."""
        ...

    async def watch(self, changed: Callable[[], None]) -> None:
        """Look after them and do what was commanded until cancelled, or return if there is nothing to look after.

        `changed` is called whenever another method would give another answer than before.
        """
        ...
