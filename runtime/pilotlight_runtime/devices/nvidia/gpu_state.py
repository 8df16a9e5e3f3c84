"""One GPU as it is now: what can be bound on it, and what is reported of it. Values only.

A GPU is given whole, in shares, or, in MIG mode, in instances. A MIG instance is metered as its part of the memory
slices; the rest is the operator's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pilotlight_core.model.devices import (
    FAKE_PRICE,
    DeviceReport,
    InstanceReport,
    MigMode,
    MigPlacement,
    ProfileReport,
    SliceName,
)
from pilotlight_core.model.messages.node_messages import SliceKind, SliceReport
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_placement.hardware.catalogue import Device, corrected, standard
from pilotlight_placement.hardware.geometry import Family
from pilotlight_runtime.devices.nvidia.gpu_health import GpuReading
from pilotlight_runtime.devices.nvidia.gpu_product import Product, product_of
from pilotlight_runtime.devices.nvidia.gpu_survey import DriverGpu
from pilotlight_runtime.devices.nvidia.mig import DriverInstance, DriverProfile

MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class GpuState:
    """A GPU with its mode and instances. `family` is None where it cannot be cut, for the reason `uncut`."""

    gpu: DriverGpu
    mode: MigMode
    online: bool = False
    """Whether its mode is switched without a reset."""
    profiles: tuple[DriverProfile, ...] = ()
    instances: tuple[DriverInstance, ...] = ()
    family: Family | None = None
    uncut: str = ""
    shareable: bool = False
    kept: bool = False
    """Whether it stays as its operator has cut it."""
    leaving: frozenset[MigPlacement] = field(default_factory=frozenset)
    """Being destroyed: nothing is bound to them."""
    changing: bool = False
    refused: str = ""
    fake: bool = False

    @property
    def uuid(self) -> str:
        return self.gpu.uuid

    @property
    def product(self) -> Product:
        return product_of(self.gpu.name, self.gpu.memory)

    @property
    def price(self) -> str:
        return f"{FAKE_PRICE}{self.product.price}" if self.fake else self.product.price

    @property
    def places(self) -> tuple[MigPlacement, ...]:
        return tuple(one.place for one in self.instances)

    def size(self, key: str) -> int:
        assert self.family is not None  # noqa: S101 - nothing is cut without one
        return self.family.by_key[key].size

    def slices(self) -> list[SliceReport]:
        """What can be bound on an idle GPU."""
        if self.changing and self.mode is not MigMode.ON:
            return []
        if self.mode is not MigMode.ON:
            return [self._whole()]
        return [self._instance(one) for one in self.instances if one.place not in self.leaving and self.family]

    def part(self, name: SliceName) -> SliceReport | None:
        """The slice or share of this name; None if there is none."""
        if not name.units:
            return next((part for part in self.slices() if part.id == str(name)), None)
        if self.mode is MigMode.ON or self.changing or not self.shareable:
            return None
        share = WHOLE_DEVICE if name.ppm is None else name.ppm
        return SliceReport(
            id=str(name),
            kind=SliceKind.SHARE,
            device=self.uuid,
            ppm=share,
            price=self.price,
            gpu_type=self.product.type,
            memory=self.gpu.memory * share // WHOLE_DEVICE,
        )

    def instance(self, name: SliceName) -> DriverInstance | None:
        wanted = MigPlacement(start=name.start, profile=name.profile)
        return next((one for one in self.instances if one.place == wanted), None)

    def report(
        self, reading: GpuReading | None, busy: Mapping[str, int], on: Mapping[str, str], withdrawn: str
    ) -> DeviceReport:
        """`busy` is percent by instance (UUID), `on` maps slices to containers."""
        seen = reading or GpuReading()
        return DeviceReport(
            id=self.uuid,
            type=self.product.type,
            name=self.gpu.name,
            memory=self.gpu.memory,
            price=self.price,
            mig=self.mode if self.mode is MigMode.ON or (self.family and not self.kept) else MigMode.NONE,
            shareable=self.shareable,
            instances=tuple(self._instance_report(one, busy, on) for one in self.instances) if self.family else (),
            profiles=tuple(
                ProfileReport(name=one.name, memory=one.memory, sms=one.sms, size=one.size, starts=one.starts)
                for one in self.profiles
            ),
            withdrawn=withdrawn,
            changing=self.changing,
            refused=self.refused,
            utilisation=seen.utilisation,
            memory_used=seen.memory_used,
            processes=seen.processes,
            fake=self.fake,
        )

    def _whole(self) -> SliceReport:
        return SliceReport(
            id=self.uuid,
            kind=SliceKind.GPU,
            device=self.uuid,
            ppm=WHOLE_DEVICE,
            price=self.price,
            gpu_type=self.product.type,
            memory=self.gpu.memory,
        )

    def name_of(self, one: DriverInstance) -> str:
        return str(SliceName(devices=(self.uuid,), profile=one.place.profile, start=one.place.start))

    def _ppm(self, one: DriverInstance) -> int:
        return self.size(one.place.profile) * WHOLE_DEVICE // self.family.slots if self.family else 0

    def _instance(self, one: DriverInstance) -> SliceReport:
        return SliceReport(
            id=self.name_of(one),
            kind=SliceKind.MIG,
            device=self.uuid,
            ppm=self._ppm(one),
            price=self.price,
            gpu_type=self.product.type,
            memory=one.profile.memory * MIB,
        )

    def _instance_report(self, one: DriverInstance, busy: Mapping[str, int], on: Mapping[str, str]) -> InstanceReport:
        name = self.name_of(one)
        return InstanceReport(
            slice=name,
            place=one.place,
            name=one.profile.name,
            uuid=one.uuid,
            memory=one.profile.memory * MIB,
            ppm=self._ppm(one),
            container=on.get(name, ""),
            utilisation=busy.get(one.uuid),
        )


def family_of(gpu: DriverGpu, profiles: tuple[DriverProfile, ...]) -> tuple[Family | None, str]:
    """How a GPU is cut, or why it is not: only one on which catalogue and driver agree."""
    product = product_of(gpu.name, gpu.memory)
    device: Device = standard().device(product.type, gpu.memory // MIB)
    if device.family is None:
        return None, f"the catalogue does not say how a {product.type} is cut"
    if not profiles:
        return None, "its driver shows no profiles"
    try:
        corrected(device, readings=[profile.reading for profile in profiles])
    except ValueError as error:
        return None, str(error)
    return device.family, ""
