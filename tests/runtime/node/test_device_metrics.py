"""What an agent's metrics tell of GPUs."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.devices import DeviceReport, InstanceReport, MigPlacement
from pilotlight_runtime.node.device_metrics import device_gauges


def values(*devices: DeviceReport) -> dict[tuple[str, ...], float]:
    return {
        (sample.name.removeprefix("pilotlight_agent_gpu_"), *sample.labels.values()): sample.value
        for metric in device_gauges(devices)
        for sample in metric.samples
    }


def device(name: str, **more: Any) -> DeviceReport:
    return DeviceReport(id=name, type="H100", name="NVIDIA H100", memory=80, price="h100", **more)


def test_a_gpu_tells_how_busy_and_how_full_it_is() -> None:
    assert values(device("GPU-1", utilisation=25, memory_used=60)) == {
        ("busy_ratio", "GPU-1", ""): 0.25,
        ("memory_used_bytes", "GPU-1"): 60,
        ("memory_bytes", "GPU-1"): 80,
    }


def test_in_mig_mode_each_instance_does_of_which_the_driver_knows() -> None:
    place = MigPlacement(start=0, profile="3g")
    instances = tuple(
        InstanceReport(slice=name, place=place, name="3g.40gb", uuid=name, memory=40, ppm=500_000, utilisation=busy)
        for name, busy in (("MIG-a", 50), ("MIG-b", None))
    )
    assert values(device("GPU-1", instances=instances)) == {("busy_ratio", "GPU-1", "MIG-a"): 0.5}


def test_who_tells_nothing_shows_nothing() -> None:
    assert values(device("GPU-1")) == {}
    assert values() == {}
