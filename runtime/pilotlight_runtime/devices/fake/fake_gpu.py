"""GPUs made of fields, and the driver's rules for cutting them; `fake_nvml` answers from them.

The geometry is the catalogue's. Ids are those that drivers gave: they differ from the numbers of profiles and by
family. A GPU with `mig` None has no MIG mode.
"""

from __future__ import annotations

import itertools
import uuid as uuids
from dataclasses import dataclass, field

import pynvml

from pilotlight_core.model.devices import MigPlacement
from pilotlight_placement.hardware.catalogue import Device, DeviceProfile, standard
from pilotlight_placement.hardware.geometry import Profile
from pilotlight_runtime.devices.nvidia.gpu_product import product_of

GIB = 2**30
MIB = 2**20
PROFILE_IDS = {
    "seven": {"1g": 19, "1g.me": 20, "1g.2x": 15, "2g": 14, "3g": 9, "4g": 5, "7g": 0},
    "four": {"1g": 14, "1g.me": 21, "2g": 5, "2g.me": 6, "4g": 0},
}
"""family -> key -> the id that instances are created with."""
COMPUTE_IDS = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}
"""Compute slices -> id of the compute instance's profile that has all of them."""
ARCHITECTURES = {
    "turing": pynvml.NVML_DEVICE_ARCH_TURING,
    "ampere": pynvml.NVML_DEVICE_ARCH_AMPERE,
    "ada": pynvml.NVML_DEVICE_ARCH_ADA,
    "hopper": pynvml.NVML_DEVICE_ARCH_HOPPER,
    "blackwell": pynvml.NVML_DEVICE_ARCH_BLACKWELL,
}
MAX_INSTANCE_ID = 14
_numbers = itertools.count()
_addresses = itertools.count(0x1000, 16)


@dataclass(kw_only=True, eq=False)
class FakeInstance:
    id: int
    profile: Profile
    start: int
    uuid: str = field(default_factory=lambda: f"MIG-{uuids.uuid4()}")
    compute: bool = False
    processes: list[int] = field(default_factory=list)
    utilisation: float = 0.0
    address: int = field(default_factory=lambda: next(_addresses))
    compute_address: int = field(default_factory=lambda: next(_addresses))


@dataclass(kw_only=True, eq=False)
class FakeGpu:
    """One GPU, scripted by its fields; memory is bytes."""

    uuid: str = field(default_factory=lambda: f"GPU-{next(_numbers):08x}-0000-4000-8000-000000000000")
    name: str = "NVIDIA H100 80GB HBM3"
    minor: int | None = None
    """By default its place in the machine."""
    total: int | None = 80 * GIB
    reserved: int = GIB // 2
    used: int = 0
    utilisation: int | None = 0
    mig: bool | None = False
    pending: bool | None = None
    """The mode after the next reset; None: the present one."""
    ecc: bool | None = True
    persistence: bool | None = True
    uncorrected: int | None = 0
    remap_failed: bool | None = False
    hears_xids: bool = True
    lost: bool = False
    gpm: bool = True
    processes: list[int] = field(default_factory=list)
    """Of the whole GPU; instances have their own."""
    instances: dict[int, FakeInstance] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    latency: dict[str, float] = field(default_factory=dict)
    """Function -> seconds."""
    last_id: int = 0

    @property
    def device(self) -> Device:
        memory = self.total or 0
        return standard().device(product_of(self.name, memory).type, memory // MIB)

    @property
    def architecture(self) -> int:
        return int(ARCHITECTURES.get(self.device.architecture, pynvml.NVML_DEVICE_ARCH_UNKNOWN))

    @property
    def cuts(self) -> dict[int, DeviceProfile]:
        """Its profiles by id; none if it cannot be cut."""
        family = self.device.family
        if family is None or self.mig is None:
            return {}
        return {PROFILE_IDS[family.name][cut.profile.key]: cut for cut in self.device.cuts}

    @property
    def users(self) -> list[int]:
        return [*self.processes, *(pid for instance in self.instances.values() for pid in instance.processes)]

    def id_of(self, profile: Profile) -> int:
        return next(number for number, cut in self.cuts.items() if cut.profile is profile)

    def free_starts(self, profile: Profile) -> tuple[int, ...]:
        family = self.device.family
        there = list(self.instances.values())
        if family is None or (profile.media and any(other.profile.media for other in there)):
            return ()
        if sum(other.profile is profile for other in there) >= profile.most:
            return ()
        mask = family.masks_of(MigPlacement(start=one.start, profile=one.profile.key) for one in there)
        return family.free_starts[mask][profile.index]

    def add(self, profile: Profile, start: int) -> FakeInstance:
        """Make an instance. As with the driver, its id is the next free one, not the smallest."""
        while True:
            self.last_id = self.last_id % MAX_INSTANCE_ID + 1
            if self.last_id not in self.instances:
                break
        made = FakeInstance(id=self.last_id, profile=profile, start=start)
        self.instances[made.id] = made
        return made

    def reset(self) -> None:
        """Reset the GPU: the pending mode holds, and instances are gone."""
        self.mig = self.mig if self.pending is None else self.pending
        self.pending = None
        self.instances.clear()
        self.processes.clear()
