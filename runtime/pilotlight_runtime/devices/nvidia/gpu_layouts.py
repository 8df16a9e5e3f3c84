"""Commands that cut a GPU: whether one can be done (pure), and doing it (blocks)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import pynvml

from pilotlight_core.model.devices import MigMode, MigPlacement
from pilotlight_core.model.messages.device_commands import Cut, DeviceCommand
from pilotlight_runtime.devices.nvidia import mig
from pilotlight_runtime.devices.nvidia.gpu_state import GpuState, family_of
from pilotlight_runtime.devices.nvidia.gpu_survey import DriverGpu
from pilotlight_runtime.devices.nvidia.mig import CannotCut, DriverInstance, DriverProfile
from pilotlight_runtime.devices.nvidia.nvml_port import Nvml


@dataclass(frozen=True, kw_only=True)
class LayoutChange:
    switch: bool | None = None
    destroy: tuple[DriverInstance, ...] = ()
    create: tuple[tuple[DriverProfile, MigPlacement], ...] = ()

    @property
    def is_nothing(self) -> bool:
        return self.switch is None and not self.destroy and not self.create


NOTHING = LayoutChange()


def change_for(state: GpuState, command: DeviceCommand, busy: Collection[str]) -> LayoutChange | str:
    """What a command changes, or why it is refused; `busy` are ids of slices in use."""
    if state.kept:
        return "kept"
    if state.changing:
        return "changing"
    return _cut(state, command, busy) if isinstance(command, Cut) else _switch(state, command.on, busy)


def _switch(state: GpuState, on: bool, busy: Collection[str]) -> LayoutChange | str:
    if state.mode is MigMode.NONE or state.family is None:
        return "not_mig"
    if on is (state.mode is MigMode.ON):
        return NOTHING
    if busy:
        return "slice_taken"
    return LayoutChange(switch=on, destroy=state.instances) if state.online else "needs_reset"


def _cut(state: GpuState, cut: Cut, busy: Collection[str]) -> LayoutChange | str:
    if state.mode is not MigMode.ON or state.family is None:
        return "not_mig"
    known = {profile.key: profile for profile in state.profiles}
    goes = tuple(one for one in state.instances if one.place in cut.destroy and one.place not in cut.create)
    stays = [one.place for one in state.instances if one not in goes]
    comes = tuple(dict.fromkeys(place for place in cut.create if place not in stays))
    if any(place.profile not in known for place in comes):
        return "illegal"
    try:
        state.family.masks_of([*stays, *comes])
    except ValueError:
        return "illegal"
    if any(state.name_of(one) in busy for one in goes):
        return "slice_taken"
    return LayoutChange(destroy=goes, create=tuple((known[place.profile], place) for place in comes))


def carry_out(nvml: Nvml, state: GpuState, change: LayoutChange) -> None:
    """Make a change; steps done before a failure stay. Blocks; raises CannotCut with the reason."""
    handle = state.gpu.handle
    try:
        for one in change.destroy:
            mig.destroy(nvml, one)
        if change.switch is not None:
            mig.switch(nvml, handle, on=change.switch)
        for profile, place in change.create:
            mig.create(nvml, handle, profile, place.start, state.size(place.profile))
    except pynvml.NVMLError as error:
        raise CannotCut(str(error)) from error


def read_state(nvml: Nvml, gpu: DriverGpu, *, shareable: bool, fake: bool, kept: bool = False) -> GpuState:
    """A GPU's state when the agent starts. Blocks; raises `NVMLError`."""
    mode = mig.mode_of(nvml, gpu.handle)
    known = () if mode is MigMode.NONE else mig.profiles(nvml, gpu.handle)
    family, uncut = (None, "") if mode is MigMode.NONE else family_of(gpu, known)
    online = mode is not MigMode.NONE and mig.switches_online(nvml, gpu.handle)
    state = GpuState(
        gpu=gpu, mode=mode, online=online, profiles=known, family=family, uncut=uncut, shareable=shareable, kept=kept,
        fake=fake,
    )  # fmt: skip
    return reread_state(nvml, state)


def reread_state(nvml: Nvml, state: GpuState) -> GpuState:
    """`state` with the mode and the instances that the driver has now. Blocks.

    Half instances, left by an agent that died while making them, are destroyed, but for a GPU that is kept as it is.
    """
    mode = mig.mode_of(nvml, state.gpu.handle)
    found: list[DriverInstance] = []
    if mode is MigMode.ON and state.family is not None:
        found, halves = mig.instances(nvml, state.gpu.handle, state.profiles)
        for half in () if state.kept else halves:
            nvml.nvmlGpuInstanceDestroy(half)
    return replace(state, mode=mode, instances=tuple(found), leaving=frozenset(), changing=False)


def missing_after_reboot(state: GpuState, places: Collection[MigPlacement], *, was_mig: bool) -> LayoutChange:
    """The instances lost by a restart of the host or a reset, unless something has been cut since.

    On Hopper and later MIG mode does not outlive a reset either.
    """
    if state.kept or state.family is None or state.instances or not was_mig:
        return NOTHING
    if state.mode is MigMode.OFF and not state.online:
        return NOTHING
    known = {profile.key: profile for profile in state.profiles}
    create = tuple((known[place.profile], place) for place in sorted(places) if place.profile in known)
    return LayoutChange(switch=None if state.mode is MigMode.ON else True, create=create)
