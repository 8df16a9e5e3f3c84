"""The slices of a kind of device that serve an ask, and their cost per throughput; no fleet is involved.

Memory, isolation and count decide; slices whose measured curves break the service level are excluded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from pilotlight_core.model.api.curve_api import CPU_SLICE
from pilotlight_core.model.devices import CPU_PRICE, gpu_price
from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.price_book import PriceBook, standard_book
from pilotlight_core.model.spec import Isolation
from pilotlight_core.model.units import WHOLE_DEVICE, GpuAsk
from pilotlight_placement.asks import curves
from pilotlight_placement.asks.ask import CPU, Ask
from pilotlight_placement.hardware.catalogue import Device, is_kind, standard
from pilotlight_placement.hardware.node import SHARE_UNITS, Domain, Slot, units_of

COST_STEP = 1.05
"""Costs within 5 % are equal, so that small differences do not outweigh fragmentation."""
UNMEASURED = 100_000
"""Added to the level of an option without a known throughput, which puts it after all measured ones."""
SLOW = 2 * UNMEASURED
"""Added to the level of an option that learnt or inherited curves show as too slow, which puts it last."""
SPOT_PREMIUM = 1.15
"""An interruption costs a restart: spot is preferred only if it is cheaper by more than this."""


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Dollars per device hour, by the book that calls are billed by."""

    book: PriceBook = field(default_factory=standard_book)

    def of(self, device: Device, domain: Domain) -> float:
        """Dollars per hour of a device in a domain, with `SPOT_PREMIUM` for spot."""
        purchase = Purchase.SPOT if domain.spot else Purchase.ON_DEMAND
        price = self.book.dollars(gpu_price(device.name), purchase=purchase, region=domain.region)
        return price * SPOT_PREMIUM if domain.spot else price

    def of_slot(self, slot: Slot, domain: Domain) -> float:
        """Dollars per hour of the whole device that a slot is a part of; of a host, of one core: all are alike."""
        if slot.kind is SliceKind.CPU:
            return self.book.dollars(CPU_PRICE)
        return self.of(standard().device(slot.type, slot.memory), domain)


@dataclass(frozen=True, kw_only=True)
class Option:
    """One kind of slice that serves an ask on one kind of device. `memory` is MiB on each device."""

    kind: SliceKind
    choice: int
    """Index in the ask's order of preference; 0 for all with `by_cost`."""
    memory: int
    part: float
    """Part of the device that it is charged for, 0 to 1."""
    count: int = 1
    profile: int = -1
    units: int = 0
    """Thousandths of a shared device; 0: no share."""
    throughput: float | None = None
    """Items per second within the service level, if known."""
    slow: bool = False
    """Its curve is known, and no batch size keeps the service level."""

    @cached_property
    def index(self) -> int:
        return max(0, self.profile)

    @cached_property
    def ppm(self) -> int:
        """Metered part of the device, in millionths."""
        return SHARE[self.units] if self.units else min(WHOLE_DEVICE, round(self.part * WHOLE_DEVICE))

    def level(self, price: float) -> int:
        """Cost per throughput in steps of 5 %, for a device at `price` dollars per hour; smaller is cheaper."""
        cost = max(1e-9, price * self.part * self.count / (self.throughput or 1.0))
        return round(math.log(cost, COST_STEP)) + (0 if self.throughput else SLOW if self.slow else UNMEASURED)


SHARE = tuple(WHOLE_DEVICE * units // SHARE_UNITS for units in range(SHARE_UNITS + 1))


@dataclass(frozen=True, kw_only=True)
class NoOption:
    filter: str
    largest: int = 0


def options(ask: Ask, device: Device, *, mig: bool, shareable: bool) -> list[Option] | NoOption:
    """The slices of a GPU that would serve an ask: MIG instances with `mig`, else the whole GPU or a share of it.

    `NoOption` names the first filter that leaves none: type, vram, count, isolation, slice or slo.
    """
    wanted = [(choice, gpu) for choice, gpu in _choices(ask) if gpu.type != CPU and is_kind(gpu.type, device.name)]
    if not wanted:
        return NoOption(filter="type")
    allowed: dict[tuple[int, int, int], Option] = {}
    for choice, gpu in wanted:
        made = _instances(ask, choice, gpu, device) if mig else _plain(ask, choice, gpu, device, shareable=shareable)
        for option in made:
            # "H100" and "ANY" may both mean it: the first counts.
            allowed.setdefault((option.profile, option.units, option.count), option)
    if not allowed:
        return _refusal(ask, device, [gpu.count for _, gpu in wanted], mig=mig)
    pinned = [option for option in allowed.values() if ask.slice in ("", pin(device.name, key_of(option, device)))]
    if not pinned:
        return NoOption(filter="slice")
    keys = [(key_of(option, device), whole_key_of(option, device)) for option in pinned]
    return _with_speeds(ask, device.name, pinned, keys) or NoOption(filter="slo")


def slot_options(ask: Ask, slot: Slot) -> list[Option] | NoOption:
    """The slot as the one option, if it serves the ask; `NoOption` names the filter that refuses it."""
    for choice, wanted in _choices(ask):
        if (slot.kind is SliceKind.CPU) != (wanted.type == CPU):
            continue
        if wanted.type != CPU and not is_kind(wanted.type, slot.type):
            continue
        if wanted.type != CPU and (refused := _slot_refusal(ask, wanted, slot)) is not None:
            return refused
        key = slot_key(slot.kind)
        if ask.slice not in ("", pin(slot.type, key)):
            return NoOption(filter="slice")
        part = max(slot.ppm / WHOLE_DEVICE, 1e-6)
        option = Option(kind=slot.kind, choice=choice, memory=slot.memory, part=part)
        return _with_speeds(ask, slot.type, [option], [(key, key)]) or NoOption(filter="slo")
    return NoOption(filter="type")


def pin(device: str, key: str) -> str:
    """A kind of slice in the form of `Ask.slice`: "H100-80GB/3g"."""
    return f"{device}/{key}"


def slot_key(kind: SliceKind) -> str:
    """A slot's slice key; "" for a part of a GPU that its agent does not describe."""
    return {SliceKind.CPU: CPU_SLICE, SliceKind.GPU: curves.WHOLE}.get(kind, "")


def key_of(option: Option, device: Device) -> str:
    """The option's slice key."""
    return curves.share(option.units) if option.units else whole_key_of(option, device)


def whole_key_of(option: Option, device: Device) -> str:
    """As `key_of`, with the whole device in place of a share."""
    return device.cuts[option.profile].profile.key if option.profile >= 0 else curves.whole(option.count)


def _choices(ask: Ask) -> Iterator[tuple[int, GpuAsk]]:
    for number, wanted in enumerate(ask.choices):
        yield (0 if ask.by_cost else number), wanted


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


def _instances(ask: Ask, choice: int, wanted: GpuAsk, device: Device) -> Iterator[Option]:
    """MIG instances cannot work together, so a count above 1 has none; an unknown need has only the largest."""
    if device.family is None or wanted.count > 1:
        return
    for cut, part in zip(device.cuts, device.shares, strict=True):
        whole = cut.profile.size == device.family.slots
        if cut.profile.media is not ask.media and not (ask.media and whole):
            continue
        if cut.memory < ask.mib() or (not whole and (not ask.vram or ask.isolation is Isolation.EXCLUSIVE)):
            continue
        yield Option(kind=SliceKind.MIG, choice=choice, memory=cut.memory, part=part, profile=cut.profile.index)


def _plain(ask: Ask, choice: int, wanted: GpuAsk, device: Device, *, shareable: bool) -> Iterator[Option]:
    if device.memory < ask.mib(wanted.count):
        return
    yield Option(kind=SliceKind.GPU, choice=choice, memory=device.memory, part=1.0, count=wanted.count)
    units = units_of(ask.mib(), device)
    if shareable and wanted.count == 1 and ask.vram and ask.isolation is Isolation.SHARED and units < SHARE_UNITS:
        memory = device.memory * units // SHARE_UNITS
        yield Option(kind=SliceKind.SHARE, choice=choice, memory=memory, part=units / SHARE_UNITS, units=units)


def _refusal(ask: Ask, device: Device, counts: list[int], *, mig: bool) -> NoOption:
    """The filter that left no slice: memory, several devices in MIG mode, or isolation."""
    largest = max((cut.memory for cut in device.cuts), default=0) if mig else device.memory
    if all(ask.mib(count) > largest for count in counts):
        return NoOption(filter="vram", largest=largest)
    if mig and all(count > 1 for count in counts):
        return NoOption(filter="count", largest=largest)
    return NoOption(filter="isolation", largest=largest)


def _with_speeds(ask: Ask, device: str, allowed: list[Option], keys: list[tuple[str, str]]) -> list[Option]:
    """The options with their throughput, without those that measured curves exclude.

    `keys` has each option's slice key, and that of the whole device for a share without a curve: sharers take turns, so
    a share reaches at best its part of the whole.
    """
    known = ask.curves
    if known is None:
        return allowed
    kept = []
    for option, (own, whole) in zip(allowed, keys, strict=True):
        key = own if known.knows(device, own) else whole
        if known.rules_out(device, key, ask.slo_ms):
            continue
        point = known.best(device, key, ask.slo_ms)
        part = option.units / SHARE_UNITS if option.units and key != own else 1.0
        slow = point is None and known.knows(device, key)
        kept.append(replace(option, throughput=point.throughput * part if point else None, slow=slow))
    return kept
