"""The fleet as rows to draw: one per device, in segments that are used, free or stranded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import Unit
from pilotlight_placement.hardware.geometry import Family
from pilotlight_placement.hardware.node import SHARE_UNITS, PlacedContainer


class SegmentUse(StrEnum):
    USED = "used"
    FREE = "free"
    STRANDED = "stranded"  # free, but no instance fits there


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A part of a device: `width` of `DeviceRow.width`; `tenant` and `container` if it is used."""

    use: SegmentUse
    width: int
    label: str = ""
    tenant: str = ""
    container: str = ""


@dataclass(frozen=True, kw_only=True)
class DeviceRow:
    """One device or slot. The segments' widths sum to `width`."""

    node: str
    unit: str
    type: str
    mig: bool
    draining: bool
    width: int
    segments: tuple[Segment, ...]


def rows(fleet: Fleet) -> list[DeviceRow]:
    return [row(unit) for _, place in sorted(fleet.places.items()) for unit in place.units]


def row(unit: Unit) -> DeviceRow:
    mig = unit.gpu is not None and unit.gpu.mig
    family = unit.gpu.device.family if unit.gpu and mig else None
    segments = _slices(unit, family) if family else _shares(unit)
    return DeviceRow(
        node=unit.node.name,
        unit=unit.id,
        type=unit.group.kind.name,
        mig=mig,
        draining=unit.node.node.draining,
        width=sum(segment.width for segment in segments),
        segments=tuple(segments),
    )


def _slices(unit: Unit, family: Family) -> list[Segment]:
    by_start = {held.slice.start: held for held in unit.held.values()}
    usable = 0
    for profile in family.profiles:
        for start in family.free_starts[unit.mask][profile.index]:
            usable |= profile.mask(start)
    segments, slot = [], 0
    while slot < family.slots:
        if (held := by_start.get(slot)) is not None:
            size = family.by_key[held.slice.profile].size
            segments.append(_used(held, size, held.slice.profile))
        else:
            size = 1
            segments.append(Segment(use=SegmentUse.FREE if usable >> slot & 1 else SegmentUse.STRANDED, width=1))
        slot += size
    return _merged(segments)


def _shares(unit: Unit) -> list[Segment]:
    parts = sorted(unit.held.values(), key=lambda held: held.container)
    segments = [_used(held, held.slice.units or SHARE_UNITS, held.slice.kind.value) for held in parts]
    return [*segments, Segment(use=SegmentUse.FREE, width=unit.free)] if unit.free else segments


def _used(held: PlacedContainer, width: int, label: str) -> Segment:
    return Segment(use=SegmentUse.USED, width=width, label=label, tenant=held.tenant, container=held.container)


def _merged(segments: list[Segment]) -> list[Segment]:
    merged: list[Segment] = []
    for use, same in groupby(segments, key=lambda segment: segment.use):
        run = list(same)
        merged += run if use is SegmentUse.USED else [Segment(use=use, width=sum(segment.width for segment in run))]
    return merged


def text(drawn: DeviceRow, columns: int = 32) -> str:
    """A row without colours: letters for used parts, "." for free ones, "x" for stranded ones."""
    bar, begun, done = "", 0, 0
    for segment in drawn.segments:
        begun, done = done, done + segment.width
        cells = done * columns // drawn.width - begun * columns // drawn.width
        fill = {SegmentUse.USED: "#", SegmentUse.FREE: ".", SegmentUse.STRANDED: "x"}[segment.use]
        bar += f"{segment.label[:cells]}".ljust(cells, fill) if segment.label else fill * cells
    state = " draining" if drawn.draining else ""
    return f"{drawn.node} {drawn.unit} {drawn.type} [{bar}]{state}"
