"""Kinds of GPU and their profiles: read from `catalogue.toml`, corrected by a driver's figures.

Names are those of specs and agents: "T4", "A100-80GB", "H200". Some drivers report several memory sizes of one product
under one name; `Catalogue.device("H100", memory)` distinguishes them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pilotlight_placement.hardware.geometry import Family, Profile

FILE = Path(__file__).with_name("catalogue.toml")
ONLINE_MIG = frozenset({"hopper", "blackwell"})
"""Architectures on which MIG mode is switched without a reset of the GPU."""


@dataclass(frozen=True, kw_only=True)
class DeviceProfile:
    """One MIG profile of one device. `memory` is usable MiB."""

    profile: Profile
    name: str
    memory: int
    sms: int


@dataclass(frozen=True, kw_only=True)
class Device:
    """One kind of GPU. `memory` is MiB; `family` is None without MIG."""

    name: str
    architecture: str
    memory: int
    sms: int
    family: Family | None = None
    cuts: tuple[DeviceProfile, ...] = ()
    assumed: str = ""
    """The figures that no device has confirmed."""

    @property
    def online_mig(self) -> bool:
        """Whether MIG mode can be switched on an idle GPU without a reset."""
        return self.family is not None and self.architecture in ONLINE_MIG

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """For each cut, its part of the device's cost: of memory slices or of SMs, whichever is more."""
        if self.family is None:
            return ()
        whole = max(cut.sms for cut in self.cuts)
        return tuple(max(cut.profile.size / self.family.slots, cut.sms / whole) for cut in self.cuts)


@dataclass(frozen=True, kw_only=True)
class ProfileReading:
    """A driver's figures of one profile: `size` and `starts` are None if it was not asked for placements."""

    name: str
    memory: int
    sms: int
    size: int | None = None
    starts: tuple[int, ...] | None = None


class Catalogue:
    """The known devices, by name."""

    def __init__(self, devices: Iterable[Device]) -> None:
        self.devices = {device.name: device for device in devices}

    def __getitem__(self, name: str) -> Device:
        return self.devices[name]

    def device(self, gpu_type: str, memory: int = 0) -> Device:
        """The device that an agent reports as `gpu_type` with `memory` MiB; an unknown type is a GPU without MIG."""
        if gpu_type in self.devices:
            return self.devices[gpu_type]
        sizes = [device for name, device in self.devices.items() if is_kind(gpu_type, name)]
        if sizes:
            return min(sizes, key=lambda device: (abs(device.memory - memory), device.memory))
        return Device(name=gpu_type, architecture="", memory=memory, sms=1)


def is_kind(asked: str, name: str) -> bool:
    """Whether `asked` means a device called `name`: "A100" is an A100-40GB or an A100-80GB, "ANY" any GPU."""
    return asked in ("ANY", name) or name.startswith(f"{asked}-")


def corrected(device: Device, *, memory: int = 0, readings: Iterable[ProfileReading] = ()) -> Device:
    """The device with the driver's figures instead of the catalogue's.

    A reading of an unknown profile is ignored, since its possible placements are unknown.

    Raises:
        ValueError: if the driver places a profile otherwise than the family does; such a GPU must not be cut.
    """
    known = {cut.name: cut for cut in device.cuts}
    for reading in readings:
        if (cut := known.get(reading.name)) is None:
            continue
        starts = cut.profile.starts if reading.starts is None else tuple(sorted(reading.starts))
        if starts != cut.profile.starts or reading.size not in (None, cut.profile.size):
            raise ValueError(
                f"{device.name}: the driver places {reading.name} with size {reading.size} at {starts}, "
                f"the catalogue with size {cut.profile.size} at {cut.profile.starts}"
            )
        known[reading.name] = replace(cut, memory=reading.memory, sms=reading.sms)
    cuts = tuple(known[cut.name] for cut in device.cuts)
    return replace(device, memory=memory or device.memory, cuts=cuts)


def read(text: str) -> Catalogue:
    """The catalogue in a TOML text.

    Raises:
        ValueError: naming the device whose profiles are not those of its family.
    """
    data = tomllib.loads(text)
    families = {name: _family(name, table) for name, table in data.get("family", {}).items()}
    return Catalogue(_device(name, table, families) for name, table in data["device"].items())


@cache
def standard() -> Catalogue:
    return read(FILE.read_text())


@cache
def family(name: str) -> Family:
    """A family of the standard catalogue: "seven" or "four"."""
    found = {device.family.name: device.family for device in standard().devices.values() if device.family}
    return found[name]


def _family(name: str, table: Mapping[str, Any]) -> Family:
    profiles = tuple(
        Profile(key=key, index=index, **{**row, "starts": tuple(row["starts"])})
        for index, (key, row) in enumerate(table["profiles"].items())
    )
    return Family(name=name, slots=table["slots"], compute=table["compute"], profiles=profiles)


def _device(name: str, table: Mapping[str, Any], families: Mapping[str, Family]) -> Device:
    rest = {key: value for key, value in table.items() if key not in ("family", "profiles")}
    if "family" not in table:
        return Device(name=name, **rest)
    family, rows = families[table["family"]], table["profiles"]
    if set(rows) != set(family.by_key):
        raise ValueError(f"{name}: its profiles are not those of the family {family.name}: {sorted(rows)}")
    cuts = tuple(DeviceProfile(profile=profile, **rows[profile.key]) for profile in family.profiles)
    return Device(name=name, family=family, cuts=cuts, **rest)
