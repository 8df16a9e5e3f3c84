"""A report has the number of the last one if nothing is new of it but what moves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.devices import InstanceReport, MigPlacement
from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState, EndedContainer, NodeReport
from pilotlight_core.model.messages.node_reports.report_revisions import (
    GAUGES,
    MOVING,
    MovingContainer,
    ReportRevisions,
    SteadyReport,
    without_moving,
)
from pilotlight_core.model.messages.wire import encode
from tests.builders.nodes import CEILINGS, SHARE, container, cpu_slot, gpu_device, node_report

INSTANCE = InstanceReport(
    slice="GPU-1:1g@0", place=MigPlacement(start=0, profile="1g"), name="1g.10gb", uuid="MIG-1", memory=10, ppm=142_857
)


def full_report(seq: int = 1, *, of: dict[str, Any] | None = None, **more: Any) -> NodeReport:
    """A node with a slice, a GPU and a container; `of` is what is other of the container."""
    device = gpu_device(instances=(INSTANCE,), utilisation=10, memory_used=5, processes=1)
    fields: dict[str, Any] = {
        "slices": (cpu_slot(),), "devices": (device,), "containers": (container(**of or {}),), "ended": (),
    } | more  # fmt: skip
    return node_report(seq=seq, **fields)


def test_what_moves_leaves_the_number_as_it_was() -> None:
    """A report's own number, calls and times of containers, gauges of devices."""
    revisions = ReportRevisions()
    assert revisions.numbered(full_report()).revision == 1
    gauged = msgspec.structs.replace(INSTANCE, utilisation=70)
    device = gpu_device(instances=(gauged,), utilisation=90, memory_used=7, processes=2)
    moved = {"running": 1, "age_s": 101.0, "idle_s": 3.0, "calls": 9, "memory_bytes": 12}

    again = revisions.numbered(full_report(2, of=moved, devices=(device,)))
    assert again.revision == 1
    assert again == msgspec.structs.replace(full_report(2, of=moved, devices=(device,)), revision=1)


@pytest.mark.parametrize(
    "new",
    [
        {"of": {"state": ContainerState.DRAINING}},
        {"of": {"slots": 2}},
        {"of": {"guessed": True}},
        {"of": {"timeline": {"bind": 1.0}}},
        {"of": {"slice": "cpu-1"}},
        {"containers": ()},
        {"slices": ()},
        {"devices": ()},
        {"devices": (gpu_device(withdrawn="it fell off the bus"),)},
        {"ended": (EndedContainer(id="c0", version="ver_1", tenant="acme"),)},
        {"ended": None},
        {"draining": True},
        {"stopped": True},
        {"controller_epoch": 4},
        {"blanks": {"default": 1}},
        {"host": SHARE},
        {"ceilings": CEILINGS},
    ],
)
def test_all_else_raises_it_and_so_does_its_return(new: dict[str, Any]) -> None:
    revisions = ReportRevisions()
    numbers = [revisions.numbered(report).revision for report in (full_report(), full_report(2, **new), full_report(3))]

    assert numbers == [1, 2, 3]


def test_whatever_a_report_says_is_of_one_kind_or_the_other() -> None:
    """What is left out of the comparison is what moves, and no field more."""
    moving = {
        "running": 1, "age_s": 5.0, "idle_s": 5.0, "calls": 5, "memory_bytes": 5, "engine": EngineReport(),
        "cpu_ms": 5, "throttled_ms": 5,
    }  # fmt: skip
    one = full_report(7, of=moving)
    still = without_moving(one)
    other = {
        field.name
        for field in msgspec.structs.fields(NodeReport)
        if getattr(one, field.name) != getattr(still, field.name)
    }
    assert other == {"seq", "containers", "devices"}
    [before], [after] = one.containers, still.containers
    changed = {each.name for each in msgspec.structs.fields(ContainerReport) if _differ(before, after, each.name)}
    assert changed == set(MOVING)
    [device], [without] = one.devices, still.devices
    changed = {each.name for each in msgspec.structs.fields(type(device)) if _differ(device, without, each.name)}
    assert changed == GAUGES


def test_what_moves_is_read_of_a_whole_report() -> None:
    report = full_report(7, of={"running": 1, "age_s": 5.0, "idle_s": 2.0}, revision=3)

    read = msgspec.msgpack.decode(encode(report), type=SteadyReport)
    moved = MovingContainer(id="c1", running=1, age_s=5.0, idle_s=2.0)
    assert read == SteadyReport(node="n1", instance="i1", seq=7, revision=3, containers=(moved,))


def _differ(one: msgspec.Struct, other: msgspec.Struct, name: str) -> bool:
    return bool(getattr(one, name) != getattr(other, name))
