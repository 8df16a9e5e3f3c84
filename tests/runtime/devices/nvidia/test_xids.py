"""The errors that the driver reports."""

from __future__ import annotations

from pilotlight_runtime.devices.fake.fake_nvml import FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia.gpu_survey import take_survey
from pilotlight_runtime.devices.nvidia.xids import AT_ONCE, XidWatch


def watch_of(*gpus: FakeGpu, missing: tuple[str, ...] = ()) -> tuple[FakeNvml, XidWatch]:
    nvml = FakeNvml(list(gpus))
    nvml.nvmlInit()
    found = take_survey(nvml).gpus
    nvml.missing = set(missing)
    return nvml, XidWatch(nvml, found)


def test_each_error_is_kept_once_by_its_gpu() -> None:
    """The latest last; the order of different ones is what a reader wants to know."""
    one, two = FakeGpu(), FakeGpu()
    nvml, watch = watch_of(one, two)
    for gpu, xid in ((one, 31), (two, 79), (one, 48), (one, 31)):
        nvml.report_xid(gpu, xid)

    watch.gather()

    assert (watch.of(one.uuid), watch.of(two.uuid), watch.of("GPU-unknown")) == ((48, 31), (79,), ())
    assert watch.deaf == {}


def test_a_flood_is_taken_in_parts() -> None:
    """One look ends, however much has come."""
    gpu = FakeGpu()
    nvml, watch = watch_of(gpu)
    for xid in range(AT_ONCE + 2):
        nvml.report_xid(gpu, xid)

    watch.gather()
    assert len(watch.of(gpu.uuid)) == AT_ONCE
    watch.gather()
    assert len(watch.of(gpu.uuid)) == AT_ONCE + 2


def test_an_error_of_one_that_cannot_say_who_it_is_counts_for_all() -> None:
    """It may be any of them."""
    one, two = FakeGpu(), FakeGpu()
    nvml, watch = watch_of(one, two)
    nvml.report_xid(one, 79)
    one.lost = True

    watch.gather()

    assert watch.of(one.uuid) == watch.of(two.uuid) == (79,)


def test_a_lost_gpu_breaks_the_queue_and_nothing_else() -> None:
    """The others still answer for themselves; that nothing is heard any more is known."""
    one, two = FakeGpu(), FakeGpu()
    _, watch = watch_of(one, two)
    one.lost = True

    watch.gather()

    assert watch.deaf == {one.uuid: "GPU is lost", two.uuid: "GPU is lost"}
    assert watch.of(two.uuid) == ()


def test_gpus_and_drivers_without_events_are_not_heard() -> None:
    """That is no error."""
    old, new = FakeGpu(hears_xids=False), FakeGpu()
    nvml, watch = watch_of(old, new)
    nvml.report_xid(new, 79)
    watch.gather()
    assert (watch.deaf, watch.of(new.uuid)) == ({old.uuid: "Not Supported"}, (79,))
    watch.close()

    nvml, watch = watch_of(new, missing=("nvmlEventSetCreate",))
    watch.gather()
    watch.close()
    assert watch.deaf == {new.uuid: "Function Not Found"}
    assert "nvmlEventSetWait_v2" not in nvml.calls
