"""Which slices of a device would do for an ask, and what each costs for what it does: `options`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypedDict

from pilotlight_core.model.api.curve_api import CPU_SLICE
from pilotlight_core.model.messages.agent_messages import SliceKind
from pilotlight_core.model.spec import Isolation
from pilotlight_core.model.units import WHOLE_DEVICE, GpuAsk
from pilotlight_placement.asks import curves
from pilotlight_placement.asks.ask import CPU, Ask
from pilotlight_placement.fragmentation.scores import units_of
from pilotlight_placement.hardware.catalogue import Device, DeviceProfile, is_kind, standard
from pilotlight_placement.hardware.node import SHARE_UNITS, Domain, Slot

COST_STEP = 1.05
"""Costs within 5 % count as alike, so that a cent does not decide what fragmentation should."""
UNMEASURED = 100_000
"""What was never measured there comes after everything that was."""
SLOW = 2 * UNMEASURED
"""What is known to be too slow there, but not surely, comes last."""
SPOT_PRICE = 0.4
"""Part of the on-demand price, where the price book has none for spot."""
SPOT_PREMIUM = 1.15
"""An interruption costs a restart: spot is preferred only if it is cheaper by more than this."""
CPU_PRICE = 0.05
"""Dollars per hour of a host's cores: they are not chosen among by price."""


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Dollars per device hour, by device name; what is missing costs what the catalogue says."""

    on_demand: Mapping[str, float] = field(default_factory=dict)
    spot: Mapping[str, float] = field(default_factory=dict)

    def of(self, device: Device, domain: Domain) -> float:
        """What an hour of the device costs there, the risk of losing it included."""
        price = self.on_demand.get(device.name, device.price)
        return self.spot.get(device.name, price * SPOT_PRICE) * SPOT_PREMIUM if domain.spot else price

    def of_slot(self, slot: Slot, domain: Domain) -> float:
        """What an hour of the device costs of which the slot is a part."""
        return CPU_PRICE if slot.kind is SliceKind.CPU else self.of(standard().device(slot.type, slot.memory), domain)


@dataclass(frozen=True, kw_only=True)
class Option:
    """One way to serve an ask on one kind of device. `memory` is MiB on each device."""

    kind: SliceKind
    choice: int
    """Its place in the ask's order of preference."""
    memory: int
    part: float
    """Of the device, for what it costs."""
    count: int = 1
    profile: int = -1
    units: int = 0
    throughput: float | None = None
    """Items per second within the service level, where that is known."""
    slow: bool = False
    """It is known there, and no batch size keeps the service level."""

    @cached_property
    def index(self) -> int:
        """Its place in `Cell.open`."""
        return max(0, self.profile)

    @cached_property
    def ppm(self) -> int:
        """The part of the device that it is metered as."""
        return SHARE[self.units] if self.units else min(WHOLE_DEVICE, round(self.part * WHOLE_DEVICE))

    def level(self, price: float) -> int:
        """Cost per throughput on a scale of 5 % steps."""
        cost = max(1e-9, price * self.part * self.count / (self.throughput or 1.0))
        return round(math.log(cost, COST_STEP)) + (0 if self.throughput else SLOW if self.slow else UNMEASURED)


SHARE = tuple(WHOLE_DEVICE * units // SHARE_UNITS for units in range(SHARE_UNITS + 1))


@dataclass(frozen=True, kw_only=True)
class NoOption:
    """Why a kind of device is no option at all: the filter that stands first, and the most memory it could give."""

    filter: str
    largest: int = 0


def options(ask: Ask, device: Device, *, mig: bool, shareable: bool) -> list[Option] | NoOption:
    """What an ask could use of a device in MIG mode, or of one that is given whole or in shares."""
    found: list[Option] = []
    typed = False
    for choice, wanted in _choices(ask):
        if wanted.type == CPU or not is_kind(wanted.type, device.name):
            continue
        typed = True
        if mig:
            found += _instances(ask, choice, wanted, device)
        else:
            found += _plain(ask, choice, wanted, device, shareable=shareable)
    if not typed:
        return NoOption(filter="type")
    if not found:
        return _refused(ask, device, mig=mig)
    pinned = [option for option in found if ask.slice in ("", pin(device.name, key_of(option, device)))]
    if not pinned:
        return NoOption(filter="slice")
    return _within_level(ask, device, _once(pinned)) or NoOption(filter="slo")


def _once(found: list[Option]) -> list[Option]:
    """Each way once: "H100" and "ANY" may both name it, and the first counts."""
    ways: dict[tuple[int, int, int], Option] = {}
    for option in found:
        ways.setdefault((option.profile, option.units, option.count), option)
    return list(ways.values())


def slot_options(ask: Ask, slot: Slot) -> list[Option] | NoOption:
    """What an ask could use of a slice that exists as it is."""
    for choice, wanted in _choices(ask):
        if (slot.kind is SliceKind.CPU) != (wanted.type == CPU):
            continue
        if wanted.type != CPU and not is_kind(wanted.type, slot.type):
            continue
        if wanted.type != CPU and (refused := _slot_refusal(ask, wanted, slot)) is not None:
            return refused
        return _slot_option(ask, choice, slot)
    return NoOption(filter="type")


def _slot_option(ask: Ask, choice: int, slot: Slot) -> list[Option] | NoOption:
    part = max(slot.ppm / WHOLE_DEVICE, 1e-6)
    option = Option(kind=slot.kind, choice=choice, memory=slot.memory, part=part)
    cut = slot_key(slot.kind)
    if ask.slice not in ("", pin(slot.type, cut)):
        return NoOption(filter="slice")
    if not cut or ask.curves is None:
        return [option]
    if ask.curves.rules_out(slot.type, cut, ask.slo_ms):
        return NoOption(filter="slo")
    return [replace(option, **_speed(ask, slot.type, cut))]


def pin(device: str, cut: str) -> str:
    """A kind of slice as an ask names it that wants no other."""
    return f"{device}/{cut}"


def slot_key(kind: SliceKind) -> str:
    """A slot's slice as curves name it; "" where it is a part of a GPU that nobody describes."""
    return {SliceKind.CPU: CPU_SLICE, SliceKind.GPU: curves.WHOLE}.get(kind, "")


def _slot_refusal(ask: Ask, wanted: GpuAsk, slot: Slot) -> NoOption | None:
    whole = slot.ppm == WHOLE_DEVICE
    if wanted.count > 1:
        return NoOption(filter="count", largest=slot.memory)
    if slot.memory < ask.mib() or (not ask.vram and not whole):
        return NoOption(filter="vram", largest=slot.memory)
    if ask.isolation is Isolation.EXCLUSIVE and not whole:
        return NoOption(filter="isolation", largest=slot.memory)
    if ask.isolation is Isolation.MIG and not whole and slot.kind is not SliceKind.MIG:
        return NoOption(filter="isolation", largest=slot.memory)
    return None


def _choices(ask: Ask) -> Iterator[tuple[int, GpuAsk]]:
    for number, wanted in enumerate(ask.choices):
        yield (0 if ask.by_cost else number), wanted


def _instances(ask: Ask, choice: int, wanted: GpuAsk, device: Device) -> Iterator[Option]:
    """MIG instances do not reach each other, so one is all there is; without a known need only the largest holds it."""
    if device.family is None or wanted.count > 1:
        return
    for cut, part in zip(device.cuts, device.shares, strict=True):
        whole = cut.profile.size == device.family.slots
        if cut.profile.media is not ask.media and not (ask.media and whole):
            continue
        if cut.memory < ask.mib() or (not whole and (not ask.vram or ask.isolation is Isolation.EXCLUSIVE)):
            continue
        yield _instance(ask, choice, cut, part, device)


def _instance(ask: Ask, choice: int, cut: DeviceProfile, part: float, device: Device) -> Option:
    return Option(
        kind=SliceKind.MIG,
        choice=choice,
        memory=cut.memory,
        part=part,
        profile=cut.profile.index,
        **_speed(ask, device.name, cut.profile.key),
    )


def _plain(ask: Ask, choice: int, wanted: GpuAsk, device: Device, *, shareable: bool) -> Iterator[Option]:
    if device.memory < ask.mib(wanted.count):
        return
    whole = _speed(ask, device.name, curves.whole(wanted.count))
    yield Option(kind=SliceKind.GPU, choice=choice, memory=device.memory, part=1.0, count=wanted.count, **whole)
    units = units_of(ask.mib(), device)
    if shareable and wanted.count == 1 and ask.vram and ask.isolation is Isolation.SHARED and units < SHARE_UNITS:
        yield Option(
            kind=SliceKind.SHARE,
            choice=choice,
            memory=device.memory * units // SHARE_UNITS,
            part=units / SHARE_UNITS,
            units=units,
            **_share_speed(ask, device.name, units, whole),
        )


class SliceSpeed(TypedDict):
    """What curves say of a slice, as options have it."""

    throughput: float | None
    slow: bool


def _speed(ask: Ask, device: str, cut: str) -> SliceSpeed:
    if ask.curves is None:
        return SliceSpeed(throughput=None, slow=False)
    point = ask.curves.best(device, cut, ask.slo_ms)
    slow = point is None and ask.curves.knows(device, cut)
    return SliceSpeed(throughput=point.throughput if point else None, slow=slow)


def _share_speed(ask: Ask, device: str, units: int, whole: SliceSpeed) -> SliceSpeed:
    """What is known of the share itself. Else: neighbours take turns, so it does its part of the whole, at best."""
    if ask.curves is not None and ask.curves.knows(device, curves.share(units)):
        return _speed(ask, device, curves.share(units))
    speed = whole["throughput"]
    return SliceSpeed(throughput=speed * units / SHARE_UNITS if speed else None, slow=whole["slow"])


def _within_level(ask: Ask, device: Device, found: list[Option]) -> list[Option]:
    """Without those that were measured and never keep the service level."""

    def keeps(option: Option) -> bool:
        if ask.curves is None or ask.slo_ms is None:
            return True
        own = key_of(option, device)
        cut = own if ask.curves.knows(device.name, own) else whole_key_of(option, device)
        return not ask.curves.rules_out(device.name, cut, ask.slo_ms)

    return [option for option in found if keeps(option)]


def key_of(option: Option, device: Device) -> str:
    """The option's slice as curves name it."""
    return curves.share(option.units) if option.units else whole_key_of(option, device)


def whole_key_of(option: Option, device: Device) -> str:
    """The same, where a share counts as the whole of which it is a part."""
    return device.cuts[option.profile].profile.key if option.profile >= 0 else curves.whole(option.count)


def _refused(ask: Ask, device: Device, *, mig: bool) -> NoOption:
    """The filter that left nothing: memory, several devices on MIG, or isolation."""
    counts = [wanted.count for _, wanted in _choices(ask) if is_kind(wanted.type, device.name)]
    largest = max((cut.memory for cut in device.cuts), default=0) if mig else device.memory
    if all(ask.mib(count) > largest for count in counts):
        return NoOption(filter="vram", largest=largest)
    if mig and all(count > 1 for count in counts):
        return NoOption(filter="count", largest=largest)
    return NoOption(filter="isolation", largest=largest)
