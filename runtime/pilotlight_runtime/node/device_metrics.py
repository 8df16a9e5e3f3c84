"""Metrics of a node's GPUs, as their driver tells: how busy they and their MIG instances are, and their memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from pilotlight_core.model.devices import DeviceReport

PERCENT = 100.0


def device_gauges(devices: Iterable[DeviceReport]) -> Iterator[Metric]:
    """Of each device that tells; a GPU in software has no driver, so it shows nothing. In MIG mode the driver knows how
    busy the instances are (from Hopper on), and not the whole.
    """
    text = "The part of the time in which a GPU, or one of its MIG instances (slice), computed."
    busy = GaugeMetricFamily("pilotlight_agent_gpu_busy_ratio", text, labels=("device", "slice"))
    used = GaugeMetricFamily(
        "pilotlight_agent_gpu_memory_used_bytes", "Memory of a GPU that is in use.", labels=("device",)
    )
    there = GaugeMetricFamily("pilotlight_agent_gpu_memory_bytes", "Memory of a GPU.", labels=("device",))
    for device in devices:
        if device.utilisation is not None:
            busy.add_metric((device.id, ""), device.utilisation / PERCENT)
        for one in device.instances:
            if one.utilisation is not None:
                busy.add_metric((device.id, one.uuid), one.utilisation / PERCENT)
        if device.memory_used is not None:
            used.add_metric((device.id,), device.memory_used)
            there.add_metric((device.id,), device.memory)
    yield from (busy, used, there)
