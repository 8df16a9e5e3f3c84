"""One GPU as it is now: what can be bound on it, and what is reported of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotlight_core.model.devices import MigMode, MigPlacement, SliceName
from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.devices.fake.fake_nvml import GIB, FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia import mig
from pilotlight_runtime.devices.nvidia.gpu_health import GpuReading
from pilotlight_runtime.devices.nvidia.gpu_layouts import read_state, reread_state
from pilotlight_runtime.devices.nvidia.gpu_state import GpuState
from pilotlight_runtime.devices.nvidia.gpu_survey import take_survey

UUID = "GPU-1"


def state_of(gpu: FakeGpu, *places: MigPlacement, shareable: bool = False) -> GpuState:
    """A GPU with instances at these places."""
    nvml = FakeNvml([gpu])
    nvml.nvmlInit()
    [found] = take_survey(nvml).gpus
    state = read_state(nvml, found, shareable=shareable, fake=True)
    known = {profile.key: profile for profile in state.profiles}
    for place in places:
        mig.create(nvml, found.handle, known[place.profile], place.start, state.size(place.profile))
    return reread_state(nvml, state)


def h100(*places: MigPlacement) -> GpuState:
    return state_of(FakeGpu(uuid=UUID, mig=True), *places)


@pytest.mark.parametrize(
    "places",
    [
        [MigPlacement(start=start, profile="1g") for start in range(7)],
        [MigPlacement(start=0, profile="4g"), MigPlacement(start=4, profile="3g")],
        [MigPlacement(start=start, profile="1g.2x") for start in (0, 2, 4, 6)],
        [MigPlacement(start=0, profile="7g")],
    ],
    ids=["small", "halves", "double", "whole"],
)
def test_instances_never_cost_more_than_the_device(places: list[MigPlacement]) -> None:
    """Each is its part of the memory slices; of seven small ones an eighth is nobody's."""
    state = h100(*places)

    ppm = [part.ppm for part in state.slices()]
    assert sum(ppm) <= WHOLE_DEVICE
    assert ppm == [state.size(place.profile) * WHOLE_DEVICE // 8 for place in places]
    assert all(part.kind is SliceKind.MIG and part.price == "fake-h100" for part in state.slices())


def test_memory_is_what_the_driver_says_of_the_profile() -> None:
    """Not what its name says."""
    [part] = h100(MigPlacement(start=4, profile="3g")).slices()

    assert part.memory == 40_448 * 2**20
    assert part.id == f"{UUID}:3g@4"


def test_what_is_leaving_is_not_offered_and_is_reported() -> None:
    """Until it is gone."""
    state = h100(MigPlacement(start=0, profile="3g"), MigPlacement(start=4, profile="3g"))
    state = replace(state, changing=True, leaving=frozenset({MigPlacement(start=4, profile="3g")}))

    assert [part.id for part in state.slices()] == [f"{UUID}:3g@0"]
    report = state.report(None, {}, {f"{UUID}:3g@0": "c1"}, "")
    assert [(one.slice, one.container) for one in report.instances] == [(f"{UUID}:3g@0", "c1"), (f"{UUID}:3g@4", "")]
    assert report.changing


def test_nothing_is_offered_of_a_gpu_whose_mode_is_being_switched() -> None:
    """Neither whole nor in shares."""
    state = replace(state_of(FakeGpu(uuid=UUID), shareable=True), changing=True)

    assert state.slices() == []
    assert state.part(SliceName(devices=(UUID,))) is None
    assert state.part(SliceName(devices=(UUID,), units=125, holder="c1")) is None


def test_a_share_is_so_many_thousandths_of_time_and_memory() -> None:
    """Of a GPU that may be given in shares."""
    name = SliceName(devices=(UUID,), units=250, holder="c1")
    part = state_of(FakeGpu(uuid=UUID), shareable=True).part(name)

    assert part is not None
    assert (part.id, part.kind, part.device, part.ppm) == (str(name), SliceKind.SHARE, UUID, WHOLE_DEVICE // 4)
    assert part.memory == (80 * GIB - GIB // 2) // 4
    assert state_of(FakeGpu(uuid=UUID)).part(name) is None
    assert h100().part(name) is None


def test_a_report_says_what_was_read_and_that_it_is_made_up() -> None:
    """Utilisation of instances is theirs; what was not read is not told."""
    state = h100(MigPlacement(start=0, profile="3g"))
    busy = {state.instances[0].uuid: 37}

    report = state.report(GpuReading(memory_used=5, processes=1), busy, {}, "it is ill")

    assert (report.fake, report.mig, report.withdrawn) == (True, MigMode.ON, "it is ill")
    assert (report.utilisation, report.memory_used, report.processes) == (None, 5, 1)
    assert [one.utilisation for one in report.instances] == [37]
    assert {one.name for one in report.profiles} >= {"1g.10gb", "3g.40gb", "7g.80gb"}


def test_a_gpu_that_the_catalogue_does_not_know_is_whole() -> None:
    """How it is cut would be a guess; it says why, and in MIG mode it is of no use."""
    state = state_of(FakeGpu(uuid=UUID, name="NVIDIA H999"))

    assert state.family is None
    assert "the catalogue does not say how a H999" in state.uncut
    assert state.report(None, {}, {}, "").mig is MigMode.NONE
    assert [part.kind for part in state.slices()] == [SliceKind.GPU]
