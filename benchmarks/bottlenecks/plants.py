"""What is planted: a function, its callers and its platform, as one value; and what an action makes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class PlantedTenant:
    """Callers of one tenant."""

    name: str = "a"
    rate: float = 0.0
    """Calls per second, whatever becomes of them; or:"""
    callers: int = 0
    """Callers that each wait for an answer before they call again."""
    think_s: float = 0.0
    cost: float = 1.0
    """Of its calls, in usual ones."""
    per_s: float = math.inf
    """Its quota."""
    budget: int = 10**9
    """Calls that its budget allows in the window."""
    in_flight: int = 10**9
    body_bytes: float = 2e3
    burst: int = 1
    """Calls that come together."""


@dataclass(frozen=True, kw_only=True)
class Plant:
    """A platform with one function. Times in seconds."""

    tenants: tuple[PlantedTenant, ...]
    containers: int = 4
    max_containers: int = 4
    min_containers: int = 1
    fits: int = 99
    """Containers that the fleet has room for."""
    owner_limit: int = 0
    """Containers that its owner's quota allows; 0: any number."""
    slots: int = 16
    batch: int = 16
    wait_s: float = 0.002
    fixed_s: float = 0.020
    """Of a batch."""
    each_s: float = 0.001
    """Of an item."""
    spread: float = 0.05
    """Of a batch's time, relative."""
    long_part: float = 0.0
    """Of calls, those that take `long_factor` times as long."""
    long_factor: float = 10.0
    cpu_part: float = 0.0
    """Of a batch's time, what the container's processors do while the device idles."""
    cores: float = 1.0
    needs_cores: float = 1.0
    """That its processors' work could use; with fewer it is throttled."""
    gateway_s: float = 0.00015
    """Of the gateway's thread, for a call."""
    gateways: int = 1
    bus_s: float = 0.0003
    bytes_per_s: float = 1e9
    load_s: float = 3.0
    idle_s: float = 1e9
    """After which a container without calls ends."""
    starts_fail: bool = False
    deaths_per_call: float = 0.0
    memory_part: float = 0.4
    unread_s: float = 0.0
    """For which a stream stands still, since its caller does not read."""
    level_s: float = 0.3
    queue_most: int = 1_000
    seconds: float = 120.0
    faster_slice: float = 0.0
    """What a call takes on a larger slice, of what it takes here, by a curve; 0: none is known."""


Changes = Mapping[str, float]


def cured(plant: Plant, changes: Changes) -> Plant:
    """The plant once the changes of an action are made."""
    for name, value in changes.items():
        plant = _cured(plant, name, value)
    return plant


def _cured(plant: Plant, name: str, value: float) -> Plant:
    count = math.ceil(value)
    match name:
        case "max_containers":
            return replace(plant, max_containers=count, containers=max(plant.containers, min(count, plant.fits)))
        case "min_containers":
            there = max(plant.containers, min(count, plant.fits))
            return replace(
                plant, min_containers=count, containers=there, max_containers=max(plant.max_containers, count)
            )
        case "containers":
            return replace(plant, owner_limit=0, max_containers=count, containers=min(count, plant.fits))
        case "fits":
            return replace(plant, fits=count, containers=min(count, plant.max_containers))
        case "slots":
            return replace(plant, slots=count)
        case "wait_ms":
            return replace(plant, wait_s=value / 1000)
        case "max_batch_size":
            return replace(plant, batch=count, slots=max(count, plant.slots if count > plant.batch else count))
        case "gateways":
            return replace(plant, gateways=count)
        case "scaledown_window":
            return replace(plant, idle_s=value)
        case "bytes_factor":
            return _of_all(plant, lambda each: replace(each, body_bytes=each.body_bytes * value))
        case "requests_per_s":
            return _of_all(plant, lambda each: replace(each, per_s=max(each.per_s, value)))
        case "budget":
            return _of_all(plant, lambda each: replace(each, budget=10**9))
        case "concurrency":
            first = plant.tenants[0]
            return replace(plant, tenants=(first, *(replace(each, in_flight=count) for each in plant.tenants[1:])))
        case "in_flight":
            return _of_all(plant, lambda each: replace(each, callers=count))
        case "execute_factor":
            return replace(plant, fixed_s=plant.fixed_s * value, each_s=plant.each_s * value)
        case "cpu_part_factor":
            left = 1 - plant.cpu_part
            return replace(plant, cpu_part=0.0, fixed_s=plant.fixed_s * left, each_s=plant.each_s * left)
        case "cores":
            return replace(plant, cores=value)
        case "starts_fail":
            return replace(plant, starts_fail=False)
        case "deaths":
            return replace(plant, deaths_per_call=0.0)
        case "memory_factor":
            return replace(plant, memory_part=plant.memory_part / value, deaths_per_call=0.0)
        case "unread_factor":
            return replace(plant, unread_s=0.0)
        case _:
            raise ValueError(f"the model has no {name}")


def _of_all(plant: Plant, change) -> Plant:  # type: ignore[no-untyped-def]
    return replace(plant, tenants=tuple(change(each) for each in plant.tenants))
