"""A function's known speed on each slice, in words, and the slices on which it could be measured."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pilotlight_core.model.api.curve_api import CPU_SLICE, CPU_TYPE, TARGET_UTILISATION, SliceKindInfo
from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_core.model.units import rate
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.curves import Curves, ThroughputPoint, share, whole
from pilotlight_placement.asks.options import NoOption, Option, key_of, options, slot_key, slot_options
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.offers import refused_domain
from pilotlight_placement.hardware.node import SHARE_UNITS, Slice


def key_of_slice(slice_: Slice) -> str:
    """The slice's key in curves; "" for a part of a GPU that no agent describes."""
    if slice_.slot:
        return slot_key(slice_.kind)
    if slice_.profile:
        return slice_.profile
    return share(slice_.units) if slice_.units else whole(len(slice_.ids))


def on_slice(curves: Curves | None, slice_: Slice, slo_ms: float | None) -> ThroughputPoint | None:
    """The fastest point on a slice within the service level, if known."""
    return curves.best(slice_.type, key_of_slice(slice_), slo_ms) if curves is not None else None


def where(device: str, cut: str) -> str:
    """A kind of slice in words: "3g of H100-80GB", "a whole T4"."""
    if (device, cut) == (CPU_TYPE, CPU_SLICE):
        return "a CPU slot"
    kind, _, number = cut.partition(":")
    if kind == "share":
        return f"{int(number) / SHARE_UNITS:.0%} of {device}"
    if kind == "whole":
        return f"{number} whole {device}" if number else f"a whole {device}"
    return f"{cut} of {device}"


def point_text(point: ThroughputPoint) -> str:
    """A point in words, with its source: "412 per second at batch 16, p95 19 ms (measured, 240 batches)"."""
    made_of = f", {point.samples} batches" if point.samples else ""
    software = ", on a GPU in software" if point.software else ""
    return (
        f"{rate(point.throughput)} per second at batch {point.batch}, p95 {point.p95_ms:,.4g} ms "
        f"({point.source.value}{made_of}{software})"
    )


def lines(curves: Curves | None, slo_ms: float | None, rps: float | None = None) -> Iterator[str]:
    """Known speeds by kind of slice within the service level; with `rps` the number of containers for that rate."""
    for device, cut in sorted(curves.points) if curves is not None else ():
        best = curves.best(device, cut, slo_ms) if curves is not None else None
        within = f" within {slo_ms:g} ms" if slo_ms is not None else ""
        if best is not None:
            yield f"on {where(device, cut)}{within}: {point_text(best)}{explain_containers(best, rps)}"
        elif curves is not None:
            fastest = min(curves.points[device, cut], key=lambda point: point.p95_ms)
            yield f"on {where(device, cut)}: no batch size is{within}; {point_text(fastest)}"


def explain_containers(point: ThroughputPoint, rps: float | None) -> str:
    """The number of containers for so many calls per second, with the computation; "" without a rate."""
    if rps is None:
        return ""
    exact = rps / (point.throughput * TARGET_UTILISATION)
    count = math.ceil(exact)
    return (
        f"; {rps:,.6g} per second / ({rate(point.throughput)} x {TARGET_UTILISATION:.0%}) = {exact:.2f}"
        f" -> {count} container{'s' * (count > 1)}"
    )


def slice_kinds(fleet: Fleet, ask: Ask) -> list[SliceKindInfo]:
    """The fleet's kinds of slices that would hold an ask, free or not, by name."""
    found: dict[tuple[str, str], SliceKindInfo] = {}
    for group in fleet.groups.values():
        if not group.total or refused_domain(ask, group.domain):
            continue
        for device, cut, what in _kinds(ask, group):
            found.setdefault((device, cut), SliceKindInfo(gpu=device, slice=cut, what=what))
    return [found[key] for key in sorted(found)]


def _kinds(ask: Ask, group: DeviceGroup) -> Iterator[tuple[str, str, str]]:
    if group.slot is not None:
        cut = slot_key(group.slot.kind)
        if cut and not isinstance(slot_options(ask, group.slot), NoOption):
            device = CPU_TYPE if group.slot.kind is SliceKind.CPU else group.kind.name
            yield device, cut, where(device, cut)
    elif group.device is not None:
        device = group.device.name
        for mig in dict.fromkeys((group.kind.mig, *([not group.kind.mig] if group.device.online_mig else []))):
            made = options(ask, group.device, mig=mig, shareable=group.kind.shareable and not mig)
            for option in made if not isinstance(made, NoOption) else ():
                yield device, key_of(option, group.device), _option_text(group, option)


def _option_text(group: DeviceGroup, option: Option) -> str:
    device = group.device
    if device is not None and option.profile >= 0:
        return f"{device.cuts[option.profile].name} of {device.name}"
    return where(device.name if device else "", key_of(option, device) if device else "")
