"""The node check's lines about GPUs. A line fails when a GPU cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from pilotlight_runtime.devices.nvidia.gpu_product import product_of
from pilotlight_runtime.devices.nvidia.gpu_survey import DriverGpu, Survey
from pilotlight_runtime.devices.nvidia.nvml_devices import NvmlDevices

GpuCheckRow = tuple[str, bool, str, str]
"""name, ok, what was seen, the consequence if it is not ok"""
UNUSED = "functions that ask for a GPU find fewer than this node has"
LEAST_DRIVER = 525
"""The first branch whose driver runs programs that were built with CUDA 12."""
DRIVERS = {"H200": 550, "B200": 570, "GB200": 570, "B300": 580}
"""The first branch that knows a GPU and cuts it, by NVIDIA's guide to MIG, where that is a later one."""


def gpu_rows(devices: NvmlDevices) -> Iterator[GpuCheckRow]:
    """The lines, from devices that have been read."""
    survey = devices.survey
    if devices.absent or not (survey.gpus or survey.unreadable):
        yield "gpus", not devices.broken, f"none: {devices.absent or 'the driver shows none'}", UNUSED
        return
    yield _driver(survey)
    faults = [*_named(devices.not_offered), *_named(devices.withdrawn()), *survey.unreadable]
    yield "gpus", not faults, "; ".join([_count(survey.gpus), *faults]), UNUSED
    libcuda = devices.libraries.libcuda
    yield "gpu libraries", libcuda is not None, str(libcuda or "no libcuda.so.1"), "no program can use a GPU here"
    yield "gpu errors", True, "; ".join(_named(devices.deaf)) or "reported by the driver", ""
    yield "mig mode", True, _switch(survey.gpus, lambda gpu: gpu.mig), ""
    yield "gpu ecc", True, _switch(survey.gpus, lambda gpu: gpu.ecc), ""
    yield "gpu persistence", True, _switch(survey.gpus, lambda gpu: gpu.persistence), ""


def _driver(survey: Survey) -> GpuCheckRow:
    names = {word for gpu in survey.gpus for word in product_of(gpu.name, gpu.memory).type.split("-")}
    least = max([LEAST_DRIVER, *(DRIVERS[name] for name in names if name in DRIVERS)])
    branch = survey.driver.partition(".")[0]
    ok = not branch.isdigit() or int(branch) >= least
    found = survey.driver if ok else f"{survey.driver}; its GPUs need {least} or newer"
    return "gpu driver", ok, found, "functions find a driver that is too old for their CUDA, or for this GPU"


def _named(reasons: Mapping[str, str]) -> list[str]:
    return [f"{uuid}: {why}" for uuid, why in reasons.items()]


def _count(gpus: tuple[DriverGpu, ...]) -> str:
    counts = Counter(product_of(gpu.name, gpu.memory).type for gpu in gpus)
    return ", ".join(f"{number} {kind}" for kind, number in counts.items()) or "none that can be read"


def _switch(gpus: tuple[DriverGpu, ...], value: Callable[[DriverGpu], bool | None]) -> str:
    """`on`, `off`, `not supported`, or how many of each."""
    names = {True: "on", False: "off", None: "not supported"}
    counts = Counter(names[value(gpu)] for gpu in gpus)
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{name}: {n}" for name, n in counts.items())
