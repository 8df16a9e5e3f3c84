"""Decisions, the fleet and computed memory, as bodies of the API."""

from __future__ import annotations

from collections.abc import Iterator

from pilotlight_core.model.api.placement_api import (
    ROOM_COUNTED,
    DecisionInfo,
    FleetInfo,
    FleetRow,
    FleetSegment,
    FloorInfo,
    FunctionPlacement,
    HostInfo,
    MemoryPlanInfo,
    MemoryRow,
    PlaceInfo,
)
from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_core.model.suggestions import as_sentence
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import CPU, MIB, Ask
from pilotlight_placement.asks.memory_need import plan_of
from pilotlight_placement.asks.vram import shortfall
from pilotlight_placement.explain.drawing import row
from pilotlight_placement.explain.speeds import lines as speed_lines
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.fleet.reports import name_of
from pilotlight_placement.hardware.catalogue import is_kind
from pilotlight_placement.hardware.node import Slice
from pilotlight_placement.search.decision_record import NoFit, Placement, Value
from pilotlight_placement.search.place import place
from pilotlight_placement.search.policy import STEP_NAMES

UNMEASURED = "Its speed is unknown, and so is the number of containers that this takes: 'pilotlight profile' finds out."


def decision_info(outcome: Placement | NoFit, container: str = "") -> DecisionInfo:
    record = outcome.record
    winner = None
    if isinstance(outcome, Placement) and record.value is not None:
        winner = _place(outcome.slice, record.value, container)
    return DecisionInfo(
        container=container,
        function=record.ask.function,
        revision=record.revision,
        considered=record.considered,
        refused=dict(record.refused),
        winner=winner,
        losers=tuple(_place(rival.slice, rival.value, "", rival.step) for rival in record.rivals),
        reason=outcome.reason if isinstance(outcome, NoFit) else "",
        never=isinstance(outcome, NoFit) and outcome.never,
    )


def _place(slice_: Slice, value: Value, container: str, step: str = "") -> PlaceInfo:
    terms = {name: float(term) for name, term in zip(STEP_NAMES, value, strict=True)}
    return PlaceInfo(node=slice_.node, slice=name_of(slice_, container), what=slice_.what, value=terms, step=step)


def fleet_info(fleet: Fleet) -> FleetInfo:
    """Every GPU and slot, and by type how many devices' worth is used, free and stranded."""
    units = [unit for _, there in sorted(fleet.places.items()) for unit in there.units]
    rows = tuple(_row(unit) for unit in units)
    totals: dict[str, dict[str, float]] = {}
    for each in rows:
        parts = totals.setdefault(each.type, {"devices": 0.0, "used": 0.0, "free": 0.0, "stranded": 0.0, "out": 0.0})
        parts["devices"] += 1
        out = each.draining or each.withdrawn
        for segment in each.segments:
            # A device that accepts nothing has no free part.
            use = "out" if out and segment.use != "used" else segment.use
            parts[use] += segment.width / each.width
    rounded = {name: {key: round(part, 4) for key, part in parts.items()} for name, parts in sorted(totals.items())}
    hosts = tuple(_host(there, host) for _, there in sorted(fleet.places.items()) if (host := there.node.host))
    return FleetInfo(devices=rows, totals=rounded, hosts=hosts)


def _host(there: NodeOccupancy, host: HostShare) -> HostInfo:
    return HostInfo(
        node=there.name,
        cores=host.cpu_millis / 1000,
        cores_promised=there.cpu / 1000,
        memory=host.memory,
        memory_promised=there.memory,
    )


def _row(unit: Unit) -> FleetRow:
    drawn, node = row(unit), unit.node.node
    segments = tuple(
        FleetSegment(
            use=part.use.value, width=part.width, label=part.label, tenant=part.tenant, container=part.container
        )
        for part in drawn.segments
    )
    return FleetRow(
        node=drawn.node,
        region=node.domain.region,
        zone=node.domain.zone,
        id=drawn.unit,
        type=drawn.type,
        mig=drawn.mig,
        spot=node.domain.spot,
        draining=drawn.draining,
        width=drawn.width,
        segments=segments,
        withdrawn=unit.gpu.withdrawn or unit.gpu.kept if unit.gpu else "",
        software=unit.gpu is not None and unit.gpu.software,
    )


def placement_info(
    fleet: Fleet, spec: FunctionSpec, ask: Ask, version: str, rps: float | None = None, floor: FloorInfo | None = None
) -> FunctionPlacement:
    """A function's memory for each choice against the largest existing slice, and how much of its floor fits."""
    plans = tuple(_memory(fleet, spec, choice) for choice in ask.choices if choice.type != CPU)
    found = place(fleet, ask)
    never = isinstance(found, NoFit) and found.never
    lines = [line for plan in plans for line in _lines(plan, spec)]
    lines.append(f"{spec.name} asks for {'a CPU slot and ' if not plans else ''}{_host_text(spec)}.")
    speeds = tuple(speed_lines(ask.curves, ask.slo_ms, rps))
    lines += speeds or (() if rps is None else (UNMEASURED,))
    reason = found.reason if isinstance(found, NoFit) and found.never else ""
    verdict = as_sentence(f"It can never run here: {reason}") if never else "The fleet can hold it."
    lines = [*lines, verdict, *([_floor_text(floor)] if floor is not None and not never else [])]
    return FunctionPlacement(
        version=version, lines=tuple(lines), plans=plans, fits=not never, reason=reason, floor=floor
    )


def _host_text(spec: FunctionSpec) -> str:
    cores = f"{spec.cpu:g} cores and " if spec.cpu is not None else ""
    return f"{cores}{spec.memory / 2**30:.1f} GiB of host memory"


def _floor_text(floor: FloorInfo) -> str:
    now = f"{floor.there} {'is' if floor.there == 1 else 'are'} there now"
    room = f"{floor.room} or more" if floor.room >= ROOM_COUNTED else f"{floor.room} more"
    now += f", and {room} would find a place." if floor.there < floor.wanted else "."
    if floor.most < floor.wanted:
        return (
            f"Of its floor of {floor.wanted} containers {floor.most} fit at most, if all of the fleet were free; {now}"
        )
    return f"Its floor of {floor.wanted} containers fits, if all of the fleet is free; {now}"


def _memory(fleet: Fleet, spec: FunctionSpec, choice: GpuAsk) -> MemoryPlanInfo:
    made = plan_of(spec, choice.count)
    largest, name = max(_slices(fleet, choice), default=(0, ""))
    return MemoryPlanInfo(
        gpu=str(choice),
        devices=choice.count,
        per_device=made.per_device if made else 0,
        rows=tuple(MemoryRow(what=r.what, arithmetic=r.arithmetic, bytes=r.bytes) for r in made.rows) if made else (),
        largest=name,
        largest_bytes=largest * MIB,
    )


def _slices(fleet: Fleet, choice: GpuAsk) -> Iterator[tuple[int, str]]:
    for group in fleet.groups.values():
        if group.total and group.kind.name != CPU and is_kind(choice.type, group.kind.name):
            yield _largest(group)


def _largest(group: DeviceGroup) -> tuple[int, str]:
    if group.slot is not None:
        return group.slot.memory, f"a {group.slot.kind.value} slice of {group.kind.name}"
    if group.device is None:
        return 0, ""
    if group.kind.mig:
        return max((cut.memory, f"{cut.name} of {group.kind.name}") for cut in group.device.cuts)
    return group.device.memory, f"a whole {group.kind.name}"


def _lines(memory: MemoryPlanInfo, spec: FunctionSpec) -> list[str]:
    made = plan_of(spec, memory.devices)
    head = f"{memory.gpu}:"
    if made is None:
        return [head, "  nothing says how much memory is needed (vram= or model=), so it gets whole devices"]
    if not memory.largest:
        return [head, *(f"  {line}" for line in made.lines()), "  the fleet has none of this type"]
    return [head, *(f"  {line}" for line in shortfall(made, memory.largest_bytes, memory.largest))]
