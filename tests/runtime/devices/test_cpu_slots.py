"""CPU slots."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.devices.cpu_slots import CpuDevices, memory_bytes, usable_cores


@pytest.mark.parametrize("slots", [1, 2, 3, 7, 64])
def test_slots_share_the_device_without_rest(slots: int) -> None:
    """However many there are, together they are the whole of it, at the price of all its cores."""
    slices = CpuDevices(slots, cores=6).inventory()

    assert sum(part.ppm for part in slices) == WHOLE_DEVICE
    assert len({part.id for part in slices}) == slots
    assert {(part.kind, part.device, part.price) for part in slices} == {(SliceKind.CPU, "cpu", "6xcpu")}
    assert CpuDevices(slots).inventory()[0].price == f"{usable_cores()}xcpu"


def test_a_slot_needs_nothing_of_the_host() -> None:
    """No device nodes, no variables; a slot that is not there has no access."""
    devices = CpuDevices(1, memory=8 * 2**30)

    assert devices.inventory()[0].memory == 8 * 2**30
    assert devices.access("cpu-0").nodes == ()
    with pytest.raises(KeyError):
        devices.access("cpu-1")


def test_a_node_may_have_none() -> None:
    """All its containers are on GPUs then."""
    assert CpuDevices(0).inventory() == []
    assert usable_cores() >= 1
    assert memory_bytes() > 0


def test_processors_are_never_withdrawn() -> None:
    """They do not fail by themselves."""
    assert CpuDevices(2).withdrawn() == {}
