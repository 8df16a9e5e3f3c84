"""The port of devices: their slices, and what a container on one of them must see of the host."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pilotlight_core.model.devices import DeviceReport, GpuLayout, SliceName
from pilotlight_core.model.messages.device_commands import DeviceCommand
from pilotlight_core.model.messages.node_messages import SliceReport
from pilotlight_runtime.sandbox.sandbox_spec import Mount


@dataclass(frozen=True, kw_only=True)
class DeviceAccess:
    """What a sandbox needs for a slice: device nodes and files of the host, and variables."""

    nodes: tuple[Path, ...] = ()
    read_only: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Set before its program starts, since the dynamic linker reads some of them only then."""


class Devices(Protocol):
    """The devices of one kind on this node."""

    def inventory(self) -> list[SliceReport]:
        """Every slice that can be bound as it is, also a failed one, which is `withdrawn`.

        The slices of a device are all of it, or less. They change when a GPU is cut.
        """
        ...

    def part(self, name: SliceName) -> SliceReport | None:
        """The slice or share of this name; None if there is none at present."""
        ...

    def withdrawn(self) -> Mapping[str, str]:
        """The devices and slices that take no new container at present -> the reason."""
        ...

    def access(self, slice_id: str) -> DeviceAccess:
        """What a container on this slice must see; raises LookupError for an unknown slice."""
        ...

    def reports(self, on: Mapping[str, str], /) -> list[DeviceReport]:
        """Its GPUs; `on` maps slices to their containers."""
        ...

    def command(self, command: DeviceCommand, busy: Collection[str], /) -> str:
        """Begin to cut a device, or return why not ("" is yes); `busy` are the ids of its slices in use."""
        ...

    def layouts(self) -> Mapping[str, GpuLayout]:
        """How GPUs are cut now, by UUID, without those being cut."""
        ...

    async def restore(self, layouts: Mapping[str, GpuLayout], /) -> None:
        """Cut GPUs as they were before the host's restart; call it before anything is bound."""
        ...

    async def watch(self, changed: Callable[[], None]) -> None:
        """Watch them and carry out commands until cancelled; returns if there is nothing to watch.

        `changed` is called whenever the answer of another method changes.
        """
        ...
