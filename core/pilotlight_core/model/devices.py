"""GPUs on the wire: what a node reports of each, and how its parts are named. `device_commands` has what cuts them.

An agent is the truth about its devices: a `NodeReport` has a `DeviceReport` for each GPU, cut or not, with the MIG
instances that the driver has now. What can be bound at this moment is in `NodeReport.slices` too: CPU slots, GPUs that
are not in MIG mode, MIG instances, and the shares that containers hold (a GPU that has some is not listed whole).

Parts are named (`SliceName`), and the same name is in `Bind.slice`, `SliceReport.id` and usage:

    GPU-8f2e…                      a whole GPU
    GPU-8f2e…+GPU-91aa…            several whole ones of one node
    GPU-8f2e…:3g@4                 the MIG instance of a profile (as the catalogue calls it) at a memory slice
    GPU-8f2e…:16/64~ctr_a_1        a bounded share: so many 64ths, for that container

A share exists from its `Bind` to the end of its container. A MIG instance exists from the `Cut` that makes it to the
one that destroys it, whoever runs on it meanwhile; a `Bind` to one that is not there is refused (`no_such_slice`).
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.units import WHOLE_DEVICE

SHARE_UNITS = 64
"""A bounded share is a number of 64ths of its device."""
FAKE_PRICE = "fake-"
"""What the price ids of GPUs begin with that exist in software only, so that every receipt says so."""
MAX_NAME = 512
_INSTANCE = re.compile(r"([0-9]{1,2}g(?:\.[a-z0-9]{1,8})?)@([0-9]{1,2})")
_SHARE = re.compile(r"([0-9]{1,2})/64~([A-Za-z0-9_.~-]{1,128})")
_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,96}")


class SliceName(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What a part of a node's devices is called. `str(name)` is its id, `SliceName.parse(id)` the reverse."""

    devices: tuple[str, ...]
    """One, or several whole ones; of a CPU slot its own name."""
    profile: str = ""
    start: int = 0
    units: int = 0
    """64ths of a bounded share; 0: it is none."""
    holder: str = ""
    """The container that a share is for."""

    def __str__(self) -> str:
        devices = "+".join(self.devices)
        if self.profile:
            return f"{devices}:{self.profile}@{self.start}"
        return f"{devices}:{self.units}/{SHARE_UNITS}~{self.holder}" if self.units else devices

    @property
    def ppm(self) -> int | None:
        """The part of its device, where the name says it: not that of a MIG instance."""
        if self.profile:
            return None
        return self.units * WHOLE_DEVICE // SHARE_UNITS if self.units else WHOLE_DEVICE

    @classmethod
    def parse(cls, text: str) -> SliceName:
        """Read a name.

        Raises:
            BadInput: if it is none.
        """
        head, _, part = text.partition(":")
        devices = tuple(head.split("+"))
        instance, share = _INSTANCE.fullmatch(part), _SHARE.fullmatch(part)
        bad = (
            len(text) > MAX_NAME
            or any(not _DEVICE.fullmatch(device) for device in devices)
            or len(set(devices)) != len(devices)
            or (":" in text and (len(devices) > 1 or not (instance or share)))
        )
        if bad or (share and not 0 < int(share[1]) <= SHARE_UNITS):
            raise BadInput(f"{text!r} names no slice.", field="slice")
        if instance:
            return cls(devices=devices, profile=instance[1], start=int(instance[2]))
        if share:
            return cls(devices=devices, units=int(share[1]), holder=share[2])
        return cls(devices=devices)


class MigMode(StrEnum):
    """Whether a GPU can be cut."""

    NONE = "none"  # it has no such mode
    OFF = "off"  # it is given whole, or in shares
    ON = "on"  # it is given in instances


class MigPlacement(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Where an instance lies: `profile` as the catalogue calls it ("1g", "1g.2x", "3g"), from memory slice `start`."""

    start: int
    profile: str

    def __str__(self) -> str:
        return f"{self.profile}@{self.start}"


class InstanceReport(msgspec.Struct, frozen=True, kw_only=True):
    """A MIG instance that exists. `slice` is its id."""

    slice: str
    place: MigPlacement
    name: str
    """As the driver calls its profile: "3g.40gb"."""
    uuid: str
    """For CUDA: "MIG-…"."""
    memory: int
    """Bytes."""
    ppm: int
    """Its part of the device: of its memory slices, so that instances never sum to more than the whole."""
    container: str = ""
    """Who runs on it; "" is nobody."""
    utilisation: int | None = None
    """Percent; None where the driver does not say."""


class ProfileReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver says of a profile: `size` and `starts` are None where it was not to be asked for placements."""

    name: str
    memory: int
    """MiB."""
    sms: int
    size: int | None = None
    starts: tuple[int, ...] | None = None


class DeviceReport(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU as its agent sees it now."""

    id: str
    """Its UUID."""
    type: str
    """What users ask for: "H100", "A100-80GB". The catalogue tells memory sizes apart by `memory`."""
    name: str
    """As the driver calls it."""
    memory: int
    """Bytes that programs may allocate."""
    price: str
    """Its id in the price book; a part costs its ppm of that."""
    mig: MigMode = MigMode.NONE
    shareable: bool = False
    """Whether it may be given in bounded shares."""
    instances: tuple[InstanceReport, ...] = ()
    profiles: tuple[ProfileReport, ...] = ()
    """As read from the driver; empty where it could not be."""
    withdrawn: str = ""
    """Why nothing new may start on it; "" if it may."""
    changing: bool = False
    refused: str = ""
    """Why the last command for it failed; "" if it did not."""
    utilisation: int | None = None
    """Percent; None where the driver does not say, as for a GPU in MIG mode."""
    memory_used: int | None = None
    """Bytes."""
    processes: int | None = None
    fake: bool = False
    """It only exists in software: containers run on the host's processors."""


class GpuLayout(msgspec.Struct, frozen=True, kw_only=True):
    """How a GPU is cut: kept so that it is cut alike after its host was started anew, which no instance outlives."""

    mig: bool
    places: tuple[MigPlacement, ...] = ()


class LayoutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The layouts of a node's GPUs by UUID, as its agent has last seen them. Key: the node."""

    devices: dict[str, GpuLayout]
    at: float
    """Unix seconds."""
