"""GPUs in messages: a node's reports of them, and the names of their parts. `device_commands` has the commands.

The agent's report is authoritative: a `NodeReport` has a `DeviceReport` for each GPU, with its present MIG instances.
`NodeReport.slices` has what can be bound now: CPU slots, GPUs that are not in MIG mode, MIG instances, and the shares
that containers hold (a GPU with shares is not listed as a whole).

`SliceName` is the name of a part:

    GPU-8f2e…                      a whole GPU
    GPU-8f2e…+GPU-91aa…            several whole GPUs of one node
    GPU-8f2e…:3g@4                 the MIG instance of a profile (as the catalogue calls it) at a memory slice
    GPU-8f2e…:250/1000~ctr_a_1     a bounded share: a number of thousandths, for that container

A share exists from its `Bind` to the end of its container, a MIG instance from the `Cut` that creates it to the one
that destroys it. A `Bind` to a missing instance is refused (`no_such_slice`).
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import Bytes, Count, Ppm, ShortText
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.units import NS_PER_HOUR, UNIT_PRICES, WHOLE_DEVICE

SHARE_UNITS = 1000
"""Parts of a device that is given in shares: about as fine as MPS can bound them, by MiB and percent of threads."""
CPU_PRICE = "cpu"
"""The price id of one core."""
CORE_PRICE = "cpu_core"
"""The price id of a core that a container is promised beside its slice."""
MEMORY_PRICE = "memory_gib"
"""The price id of a GiB of host memory that a container is promised."""
HOST_PRICES = (CORE_PRICE, MEMORY_PRICE)
MEMORY_DEVICE = "memory"
"""What parked containers are metered on: the host memory that a node keeps for them."""
WARM_PRICE = "warm_memory"
"""The price id of its parts, which cost nothing: the memory itself is paid for by `MEMORY_PRICE`."""
MINIMUM_PRICE = "minimum"
"""In the ledger: time that a start of a call is billed for without having taken it."""
UNIT_PPM = NS_PER_HOUR
"""In the ledger a unit is a nanosecond of so many millionths: as of time, `ns` times `ppm` times a price is its cost.
"""
CHARGES = frozenset((MINIMUM_PRICE, *UNIT_PRICES))
"""What is billed for no time of anything."""
BESIDE_PRICES = frozenset((*HOST_PRICES, WARM_PRICE, *CHARGES))
"""What is billed beside the time of devices."""
UNKNOWN_PRICE = "gpu"
"""The price id of GPUs without one of their own."""
PRICED_GPUS = ("A10", "A100", "A10G", "A30", "B200", "H100", "H200", "L4", "L40S", "T4")
"""The products with a price id of their own."""
FAKE_PRICE = "fake-"
"""Prefix of the price ids of GPUs that exist in software only, which shows on every receipt."""
MAX_NAME = 512
_CPU_PRICE = re.compile(rf"(?:([1-9][0-9]{{0,3}})x)?{CPU_PRICE}")
_CPU_SLOT = re.compile(r"cpu-[0-9]{1,6}")
MOST_CORES = 1_024
"""Of one host: a node must not sell more than there can be."""
_GPU_TYPE = re.compile(r"([A-Z0-9]+)(?:-[0-9]+GB)?")
_INSTANCE = re.compile(r"([0-9]{1,2}g(?:\.[a-z0-9]{1,8})?)@([0-9]{1,2})")
_SHARE = re.compile(r"([0-9]{1,4})/1000~([A-Za-z0-9_.~-]{1,128})")
_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,96}")


def cpu_price(cores: int) -> str:
    """The price id of a host's processors: "16xcpu"."""
    return f"{min(cores, MOST_CORES)}x{CPU_PRICE}"


def is_cpu_price(price: str) -> bool:
    found = _CPU_PRICE.fullmatch(price)
    return found is not None and int(found[1] or 1) <= MOST_CORES


def is_cpu_slot(name: str) -> bool:
    """Whether a slice of that name is a CPU slot."""
    return _CPU_SLOT.fullmatch(name) is not None


def cores_of(price: str) -> int:
    """The cores of a host by the price id of its processors; 0: it is that of another device."""
    found = _CPU_PRICE.fullmatch(price)
    return int(found[1] or 1) if found is not None else 0


def gpu_of_price(price: str) -> str:
    """The type of GPU that a price id is of, as reports say it: "H100", "cpu" of CPU slots, "host" of its parts.

    "minimum" of what calls are billed for at least, "units" of what they count.
    """
    if price in HOST_PRICES or price == WARM_PRICE:
        return "host"
    if price in CHARGES:
        return MINIMUM_PRICE if price == MINIMUM_PRICE else "units"
    if is_cpu_price(price):
        return CPU_PRICE
    name = price.removeprefix(FAKE_PRICE)
    return price.removesuffix(name) + name.upper()


def gpu_price(gpu_type: str) -> str:
    """The price id of a GPU by its type: "a100" for "A100-40GB", and for the A10G, the A10 as one cloud has it."""
    found = _GPU_TYPE.fullmatch(gpu_type)
    if found is None or found[1] not in PRICED_GPUS:
        return UNKNOWN_PRICE
    return "a10" if found[1] == "A10G" else found[1].lower()


class SliceName(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The name of a part of a node's devices. `str(name)` is its id, `SliceName.parse(id)` the reverse."""

    devices: tuple[str, ...]
    """One, or several whole ones; for a CPU slot its own name."""
    profile: str = ""
    start: int = 0
    units: int = 0
    """Thousandths of the device in a bounded share; 0: not a share."""
    holder: str = ""

    def __str__(self) -> str:
        devices = "+".join(self.devices)
        if self.profile:
            return f"{devices}:{self.profile}@{self.start}"
        return f"{devices}:{self.units}/{SHARE_UNITS}~{self.holder}" if self.units else devices

    @property
    def ppm(self) -> int | None:
        """The part of its device; None for a MIG instance, whose name does not determine it."""
        if self.profile:
            return None
        return self.units * WHOLE_DEVICE // SHARE_UNITS if self.units else WHOLE_DEVICE

    @classmethod
    def parse(cls, text: str) -> SliceName:
        """The inverse of `str`.

        Raises:
            BadInput: if it names no slice.
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
    """Whether a GPU can be cut into instances."""

    NONE = "none"  # it does not support MIG
    OFF = "off"  # it is allocated whole, or in shares
    ON = "on"  # it is allocated in instances


class MigPlacement(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The position of an instance: `profile` as in the catalogue ("1g", "1g.2x", "3g"), from memory slice `start`."""

    start: Annotated[int, Meta(ge=0, le=64)]
    profile: ShortText

    def __str__(self) -> str:
        return f"{self.profile}@{self.start}"


class InstanceReport(msgspec.Struct, frozen=True, kw_only=True):
    """An existing MIG instance. `slice` is its id."""

    slice: ShortText
    place: MigPlacement
    name: ShortText
    """The driver's name of its profile: "3g.40gb"."""
    uuid: ShortText
    """For CUDA: "MIG-…"."""
    memory: Bytes
    """Bytes."""
    ppm: Ppm
    """Its part of the device's memory slices, so that instances never sum to more than the whole."""
    container: ShortText = ""
    utilisation: Count | None = None
    """Percent; None if the driver does not report it."""


class ProfileReport(msgspec.Struct, frozen=True, kw_only=True):
    """The driver's data of a profile; `size` and `starts` are None if it was not asked for placements."""

    name: ShortText
    memory: Bytes
    """MiB."""
    sms: Count
    size: Count | None = None
    starts: Annotated[tuple[Count, ...], Meta(max_length=64)] | None = None


class DeviceReport(msgspec.Struct, frozen=True, kw_only=True):
    id: ShortText
    type: ShortText
    """The type in specs: "H100", "A100-80GB". The catalogue distinguishes memory sizes by `memory`."""
    name: ShortText
    memory: Bytes
    """Bytes that programs may allocate."""
    price: ShortText
    """Its id in the price book; a part costs its ppm of that."""
    mig: MigMode = MigMode.NONE
    shareable: bool = False
    instances: Annotated[tuple[InstanceReport, ...], Meta(max_length=64)] = ()
    profiles: Annotated[tuple[ProfileReport, ...], Meta(max_length=64)] = ()
    """As read from the driver; empty if that failed."""
    withdrawn: str = ""
    changing: bool = False
    refused: str = ""
    """Why the last command for it failed, or ""."""
    utilisation: Count | None = None
    memory_used: Bytes | None = None
    """Bytes."""
    processes: Count | None = None
    fake: bool = False
    """It exists in software only: containers run on the host's processors."""


class GpuLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The layout of a GPU, restored after a reboot of the host, which destroys all instances."""

    mig: bool
    places: tuple[MigPlacement, ...] = ()


class LayoutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The last seen layouts of a node's GPUs, by UUID. Key: the node."""

    devices: dict[str, GpuLayout]
    at: float
