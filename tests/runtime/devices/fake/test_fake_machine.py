"""A machine whose GPUs exist in software only."""

from __future__ import annotations

from pathlib import Path

import pynvml
import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_runtime.devices.fake.fake_machine import FakeMachine, build, parse_fake_gpus
from pilotlight_runtime.devices.nvidia import mig


def machine(folder: Path, *, boot: str = "b1", spec: str = "1xH100:mig,2xT4:share") -> FakeMachine:
    """One that is open, without the driver's delays."""
    made = build(spec, node="n", file=folder / "gpus.json", boot=boot)
    for gpu in made.nvml.gpus:
        gpu.latency.clear()
    made.nvml.nvmlInit()
    return made


def test_a_spec_names_kinds_counts_and_options() -> None:
    """The count may be left out."""
    kinds = [(kind.count, kind.device.name, kind.mig, kind.share) for kind in parse_fake_gpus("2xA30:mig, t4:share")]

    assert kinds == [(2, "A30", True, False), (1, "T4", False, True)]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("", "is not understood"),
        ("2xFoo", "not in the catalogue"),
        ("0xT4", "must be 1 to 64"),
        ("40xT4,40xL4", "more than 64"),
        ("T4:mig", "has no MIG mode"),
        ("H100:fast", "unknown"),
        ("H100:mig:share", "too many"),
    ],
)
def test_a_wrong_spec_is_refused_with_its_reason(spec: str, why: str) -> None:
    """Each mistake has its own sentence."""
    with pytest.raises(BadInput, match=why):
        parse_fake_gpus(spec)


def test_only_what_was_said_is_shared(tmp_path: Path) -> None:
    """By UUID, of which each GPU has its own."""
    made = machine(tmp_path)

    uuids = [gpu.uuid for gpu in made.nvml.gpus]
    assert len(set(uuids)) == 3
    assert made.shareable == set(uuids[1:])


def test_instances_outlive_the_agent_but_not_the_boot(tmp_path: Path) -> None:
    """As with a real driver."""
    nvml = machine(tmp_path).nvml
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    known = mig.profiles(nvml, handle)
    third = next(profile for profile in known if profile.key == "3g")
    made = mig.create(nvml, handle, third, 4, 4)

    again = machine(tmp_path).nvml
    found, halves = mig.instances(again, again.nvmlDeviceGetHandleByIndex(0), known)
    assert [(one.uuid, str(one.place)) for one in found] == [(made.uuid, "3g@4")]
    assert halves == []
    assert machine(tmp_path, boot="b2").nvml.gpus[0].instances == {}


def test_the_double_refuses_what_the_driver_refuses(tmp_path: Path) -> None:
    """A place that is taken, a caller without root, a GPU that is not in MIG mode, an instance in use."""
    nvml = machine(tmp_path, spec="H100:mig,H100").nvml
    handle, other = (nvml.nvmlDeviceGetHandleByIndex(index) for index in range(2))
    third = next(profile for profile in mig.profiles(nvml, handle) if profile.key == "3g")
    made = mig.create(nvml, handle, third, 4, 4)

    with pytest.raises(mig.CannotCut, match="code 23"):
        mig.create(nvml, handle, third, 4, 4)
    with pytest.raises(mig.CannotCut, match="Not Supported"):
        mig.create(nvml, other, third, 4, 4)
    with pytest.raises(pynvml.NVMLError_InUse):
        nvml.nvmlGpuInstanceDestroy(made.handle)
    nvml.root = False
    with pytest.raises(mig.CannotCut, match="Insufficient Permissions"):
        mig.create(nvml, handle, third, 0, 4)
    nvml.root = True
    mig.destroy(nvml, made)
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        nvml.nvmlGpuInstanceGetInfo(made.handle)


def test_left_to_the_driver_small_ones_first_do_not_fit(tmp_path: Path) -> None:
    """1g, 1g, 2g, 3g fails where 3g, 2g, 1g, 1g does not."""

    def fits(*keys: str) -> bool:
        nvml = machine(tmp_path, boot="-".join(keys), spec="H100:mig").nvml
        handle = nvml.nvmlDeviceGetHandleByIndex(0)
        ids = {profile.key: profile.id for profile in mig.profiles(nvml, handle)}
        try:
            for key in keys:
                nvml.nvmlDeviceCreateGpuInstance(handle, ids[key])
        except pynvml.NVMLError_InsufficientResources:
            return False
        return True

    assert not fits("1g", "1g", "2g", "3g")
    assert fits("3g", "2g", "1g", "1g")
