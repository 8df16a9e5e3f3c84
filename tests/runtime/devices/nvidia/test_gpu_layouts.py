"""Commands that cut a GPU: what is to be done, why it is refused, and what is left when it fails."""

from __future__ import annotations

from dataclasses import replace

import pynvml
import pytest

from pilotlight_core.model.devices import MigMode, MigPlacement
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_runtime.devices.fake.fake_nvml import GIB, FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia.gpu_layouts import (
    NOTHING,
    LayoutChange,
    carry_out,
    change_for,
    missing_after_reboot,
    read_state,
    reread_state,
)
from pilotlight_runtime.devices.nvidia.gpu_state import GpuState
from pilotlight_runtime.devices.nvidia.gpu_survey import take_survey
from pilotlight_runtime.devices.nvidia.mig import CannotCut

THIRD, OTHER, SMALL = (
    MigPlacement(start=4, profile="3g"),
    MigPlacement(start=0, profile="3g"),
    MigPlacement(start=0, profile="1g"),
)


class Bench:
    """One GPU under the double, cut as commanded."""

    def __init__(self, gpu: FakeGpu | None = None) -> None:
        self.gpu = gpu or FakeGpu(mig=True)
        self.nvml = FakeNvml([self.gpu])
        self.nvml.nvmlInit()
        self.state = self.look()

    def look(self) -> GpuState:
        """As an agent sees it that starts now."""
        [found] = take_survey(self.nvml).gpus
        return read_state(self.nvml, found, shareable=False, fake=False)

    def change(self, command: Cut | SwitchMig, *busy: str) -> LayoutChange | str:
        return change_for(self.state, command, busy)

    def do(self, command: Cut | SwitchMig) -> None:
        """Raises CannotCut; what the driver has then is read in any case."""
        change = self.change(command)
        assert isinstance(change, LayoutChange)
        try:
            carry_out(self.nvml, self.state, change)
        finally:
            self.state = reread_state(self.nvml, self.state)

    def cut(self, *create: MigPlacement, destroy: tuple[MigPlacement, ...] = ()) -> None:
        self.do(cut(*create, destroy=destroy))

    @property
    def places(self) -> list[str]:
        return [str(place) for place in self.state.places]


def cut(*create: MigPlacement, destroy: tuple[MigPlacement, ...] = ()) -> Cut:
    return Cut(epoch=1, device="any", destroy=destroy, create=create)


def switched(on: bool) -> SwitchMig:
    return SwitchMig(epoch=1, device="any", on=on)


def test_what_is_there_already_is_not_asked_for_again() -> None:
    """A repeated command does nothing; one that wants half of what is there makes the other half."""
    bench = Bench()
    bench.cut(THIRD)
    before = bench.state.instances[0].uuid

    assert bench.change(cut(THIRD)) == NOTHING
    assert bench.change(cut(THIRD, destroy=(THIRD,))) == NOTHING
    assert bench.change(cut(destroy=(OTHER,))) == NOTHING
    bench.cut(THIRD, SMALL)
    assert bench.places == ["1g@0", "3g@4"]
    assert bench.state.instances[1].uuid == before


def test_old_instances_go_before_new_ones_come() -> None:
    """In the place of two, one: it would not fit before."""
    bench = Bench()
    bench.cut(THIRD, OTHER)
    whole = MigPlacement(start=0, profile="7g")
    bench.cut(whole, destroy=(THIRD, OTHER))

    assert bench.places == ["7g@0"]
    order = [call for call in bench.nvml.calls if call.startswith(("nvmlDeviceCreate", "nvmlGpuInstanceDestroy"))]
    assert order[-3:] == ["nvmlGpuInstanceDestroy"] * 2 + ["nvmlDeviceCreateGpuInstanceWithPlacement"]


@pytest.mark.parametrize(
    "create",
    [
        (MigPlacement(start=1, profile="3g"),),
        (MigPlacement(start=4, profile="4g"),),
        (MigPlacement(start=2, profile="3g"), MigPlacement(start=4, profile="3g")),
        (MigPlacement(start=0, profile="4g"), MigPlacement(start=3, profile="1g")),
        (MigPlacement(start=0, profile="1g.me"), MigPlacement(start=1, profile="1g.me")),
        (MigPlacement(start=0, profile="9g"),),
        (MigPlacement(start=7, profile="1g"),),
    ],
    ids=str,
)
def test_what_does_not_fit_together_is_refused_as_a_whole(create: tuple[MigPlacement, ...]) -> None:
    """A place that never was legal, two that overlap, a second one with the media engines, a profile nobody has."""
    assert Bench().change(cut(*create)) == "illegal"


def test_one_with_the_media_engines_is_made_once() -> None:
    """The driver has one set of them per GPU."""
    bench = Bench()
    bench.cut(MigPlacement(start=6, profile="1g.me"))

    assert bench.places == ["1g.me@6"]
    assert bench.change(cut(MigPlacement(start=0, profile="1g.me"))) == "illegal"
    assert isinstance(bench.change(cut(SMALL)), LayoutChange)


def test_an_instance_in_use_stays() -> None:
    """By a container, which the agent knows, or by a process, which the driver tells."""
    bench = Bench()
    bench.cut(THIRD, OTHER)
    [other, third] = bench.state.instances

    assert bench.change(cut(destroy=(THIRD,)), bench.state.name_of(third)) == "slice_taken"
    assert isinstance(bench.change(cut(destroy=(OTHER,)), bench.state.name_of(third)), LayoutChange)
    bench.gpu.instances[third.number].processes.append(4242)
    with pytest.raises(CannotCut, match="3g@4 has processes: 4242"):
        bench.cut(destroy=(THIRD,))
    assert bench.places == ["3g@0", "3g@4"]
    assert bench.gpu.instances[other.number].compute


def test_nothing_more_is_begun_while_something_is_under_way() -> None:
    """Whatever it is."""
    bench = Bench()
    bench.state = replace(bench.state, changing=True)

    assert bench.change(cut(THIRD)) == bench.change(switched(on=False)) == "changing"


@pytest.mark.parametrize(
    ("gpu", "why"),
    [
        (FakeGpu(name="Tesla T4", total=16 * GIB, mig=None), "not_mig"),
        (FakeGpu(), "not_mig"),
        (FakeGpu(name="NVIDIA H999", mig=True), "not_mig"),
    ],
    ids=["no such mode", "off", "unknown"],
)
def test_what_cannot_be_cut_is_not_cut(gpu: FakeGpu, why: str) -> None:
    """One without the mode, one that is not in it, one that the catalogue does not know."""
    assert Bench(gpu).change(cut(SMALL)) == why


def test_the_mode_is_switched_online_only_from_hopper_on() -> None:
    """An A100 would have to be reset; a pending mode would surprise whoever resets it next."""
    hopper, ampere = Bench(FakeGpu()), Bench(FakeGpu(name="NVIDIA A100-SXM4-80GB"))

    assert (ampere.state.online, ampere.change(switched(on=True))) == (False, "needs_reset")
    assert ampere.change(switched(on=False)) == NOTHING
    hopper.do(switched(on=True))
    hopper.cut(THIRD)
    assert hopper.change(switched(on=False), hopper.state.uuid) == "slice_taken"
    hopper.do(switched(on=False))
    assert (hopper.state.mode, hopper.state.instances, hopper.gpu.instances) == (MigMode.OFF, (), {})


def test_a_mode_that_cannot_be_had_now_is_not_left_pending() -> None:
    """Some monitor has it open."""
    bench = Bench(FakeGpu(processes=[7]))

    with pytest.raises(CannotCut, match="some process uses the GPU"):
        bench.do(switched(on=True))
    assert bench.gpu.pending is None
    assert bench.state.mode is MigMode.OFF


def test_a_gpu_that_needs_a_reset_after_all_says_so() -> None:
    """A driver that is of another opinion than the architecture suggests."""
    bench = Bench(FakeGpu(name="NVIDIA A100-SXM4-80GB"))
    bench.state = replace(bench.state, online=True)

    with pytest.raises(CannotCut, match="without a reset of the GPU"):
        bench.do(switched(on=True))
    assert (bench.gpu.pending, bench.gpu.mig) == (None, False)


def test_a_second_half_that_cannot_be_made_takes_the_first_one_away() -> None:
    """What was made before stays, as the driver has it."""
    bench = Bench()
    bench.cut(OTHER)
    bench.gpu.errors["nvmlGpuInstanceCreateComputeInstance"] = pynvml.NVML_ERROR_UNKNOWN

    with pytest.raises(CannotCut, match=r"3g.40gb at 4 could not be made: Unknown Error"):
        bench.cut(THIRD)
    assert bench.places == ["3g@0"]
    assert len(bench.gpu.instances) == 1


@pytest.mark.parametrize("before", ["nvmlGpuInstanceCreateComputeInstance", "nvmlGpuInstanceDestroy"])
def test_a_half_that_a_dead_agent_left_is_destroyed(before: str) -> None:
    """It died between the two steps of making an instance, or of destroying one; its place is free again."""
    bench = Bench()
    if before == "nvmlGpuInstanceDestroy":
        bench.cut(THIRD, OTHER)
        next(one for one in bench.gpu.instances.values() if one.start == 4).compute = False
    else:
        bench.cut(OTHER)
        assert bench.gpu.device.family is not None
        bench.gpu.add(bench.gpu.device.family.by_key["3g"], 4)

    bench.state = bench.look()

    assert bench.places == ["3g@0"]
    assert [one.start for one in bench.gpu.instances.values()] == [0]
    bench.cut(THIRD)
    assert bench.places == ["3g@0", "3g@4"]


def test_after_a_reboot_what_is_missing_is_what_was_there() -> None:
    """On Hopper the mode is gone too; on Ampere it is kept, and without it only a reset would help."""
    kept = (OTHER, THIRD)
    hopper = Bench(FakeGpu())
    ampere = Bench(FakeGpu(name="NVIDIA A100-SXM4-80GB", mig=True))

    change = missing_after_reboot(hopper.state, kept, was_mig=True)
    assert (change.switch, [place for _, place in change.create]) == (True, [OTHER, THIRD])
    carry_out(hopper.nvml, hopper.state, change)
    assert [str(place) for place in reread_state(hopper.nvml, hopper.state).places] == ["3g@0", "3g@4"]
    assert missing_after_reboot(ampere.state, kept, was_mig=True).switch is None
    off = Bench(FakeGpu(name="NVIDIA A100-SXM4-80GB"))
    assert missing_after_reboot(off.state, kept, was_mig=True) == NOTHING


def test_a_gpu_that_is_kept_is_never_changed() -> None:
    """By no command, not after a reboot, and not where a dead agent left a half; it is reported as one without MIG."""
    bench = Bench(FakeGpu(mig=False))
    [found] = take_survey(bench.nvml).gpus
    kept = read_state(bench.nvml, found, shareable=False, fake=False, kept=True)

    assert change_for(kept, SwitchMig(device=kept.uuid, on=True, epoch=1), ()) == "kept"
    assert missing_after_reboot(kept, [THIRD], was_mig=True) == NOTHING
    assert kept.report(None, {}, {}, "").mig is MigMode.NONE
    assert bench.state.report(None, {}, {}, "").mig is MigMode.OFF


def test_a_gpu_that_is_kept_in_mig_mode_offers_what_it_has() -> None:
    """Its operator has cut it."""
    bench = Bench()
    bench.cut(THIRD)
    [found] = take_survey(bench.nvml).gpus
    kept = read_state(bench.nvml, found, shareable=False, fake=False, kept=True)

    assert change_for(kept, cut(OTHER), ()) == "kept"
    assert kept.report(None, {}, {}, "").mig is MigMode.ON
    assert [part.id for part in kept.slices()] == [f"{kept.uuid}:3g@4"]


def test_what_is_cut_is_left_as_it_is() -> None:
    """The driver is right, and the record is old; so it is for a GPU that had been given whole."""
    bench = Bench()
    bench.cut(SMALL)

    assert missing_after_reboot(bench.state, (THIRD,), was_mig=True) == NOTHING
    assert missing_after_reboot(Bench(FakeGpu()).state, (), was_mig=False) == NOTHING
    assert (
        missing_after_reboot(Bench(FakeGpu(name="Tesla T4", total=16 * GIB, mig=None)).state, (), was_mig=True)
        == NOTHING
    )


def test_ids_of_instances_are_not_taken_for_their_places() -> None:
    """The driver gives the next free one, and takes none again at once."""
    bench = Bench()
    bench.cut(THIRD)
    bench.cut(OTHER, destroy=(THIRD,))
    bench.cut(THIRD)

    assert [(str(one.place), one.number) for one in bench.state.instances] == [("3g@0", 2), ("3g@4", 3)]
    assert bench.look().instances[1].uuid == bench.state.instances[1].uuid


def test_a_handle_of_an_instance_that_is_gone_is_refused() -> None:
    """As after a reset that somebody did by hand: the change fails, and the next look sees what there is."""
    bench = Bench()
    bench.cut(THIRD)
    bench.gpu.reset()

    with pytest.raises(CannotCut, match="Invalid Argument"):
        bench.cut(destroy=(THIRD,))
    assert bench.places == []


def test_a_lost_gpu_cannot_be_cut_and_its_neighbour_can() -> None:
    """The error is the driver's."""
    bench = Bench()
    change = bench.change(cut(THIRD))
    assert isinstance(change, LayoutChange)
    bench.gpu.lost = True

    with pytest.raises(CannotCut, match="GPU is lost"):
        carry_out(bench.nvml, bench.state, change)
