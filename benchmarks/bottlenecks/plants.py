"""What is planted: a function, its callers and its platform, as one value; and what an action makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
        plant = CURES[name](plant, value)
    return plant


def _of_all(plant: Plant, change: Callable[[PlantedTenant], PlantedTenant]) -> Plant:
    return replace(plant, tenants=tuple(change(each) for each in plant.tenants))


def _with_most(plant: Plant, value: float) -> Plant:
    count = math.ceil(value)
    there = max(plant.containers, min(count, plant.fits))
    return replace(plant, max_containers=count, containers=there, owner_limit=0)


def _with_least(plant: Plant, value: float) -> Plant:
    count = math.ceil(value)
    there = max(plant.containers, min(count, plant.fits))
    return replace(plant, min_containers=count, containers=there, max_containers=max(plant.max_containers, count))


def _with_owners(plant: Plant, value: float) -> Plant:
    count = math.ceil(value)
    return replace(plant, owner_limit=0, max_containers=count, containers=min(count, plant.fits))


def _with_room(plant: Plant, value: float) -> Plant:
    return replace(plant, fits=math.ceil(value), containers=min(math.ceil(value), plant.max_containers))


def _with_batches(plant: Plant, value: float) -> Plant:
    return replace(plant, batch=math.ceil(value), slots=max(math.ceil(value), min(plant.slots, 2 * math.ceil(value))))


def _with_cap(plant: Plant, value: float) -> Plant:
    first, *others = plant.tenants
    return replace(plant, tenants=(first, *(replace(each, in_flight=math.ceil(value)) for each in others)))


def _slower_by(plant: Plant, value: float) -> Plant:
    return replace(plant, fixed_s=plant.fixed_s * value, each_s=plant.each_s * value)


def _without_processors(plant: Plant, _value: float) -> Plant:
    return replace(_slower_by(plant, 1 - plant.cpu_part), cpu_part=0.0)


CURES: Mapping[str, Callable[[Plant, float], Plant]] = {
    "max_containers": _with_most,
    "min_containers": _with_least,
    "containers": _with_owners,
    "fits": _with_room,
    "slots": lambda plant, value: replace(plant, slots=math.ceil(value)),
    "wait_ms": lambda plant, value: replace(plant, wait_s=value / 1000),
    "max_batch_size": _with_batches,
    "gateways": lambda plant, value: replace(plant, gateways=math.ceil(value)),
    "scaledown_window": lambda plant, value: replace(plant, idle_s=value),
    "bytes_factor": lambda plant, value: _of_all(plant, lambda one: replace(one, body_bytes=one.body_bytes * value)),
    "requests_per_s": lambda plant, value: _of_all(plant, lambda one: replace(one, per_s=max(one.per_s, value))),
    "budget": lambda plant, _: _of_all(plant, lambda one: replace(one, budget=10**9)),
    "concurrency": _with_cap,
    "in_flight": lambda plant, value: _of_all(plant, lambda one: replace(one, callers=math.ceil(value))),
    "execute_factor": _slower_by,
    "cpu_part_factor": _without_processors,
    "cores": lambda plant, value: replace(plant, cores=value),
    "starts_fail": lambda plant, _: replace(plant, starts_fail=False),
    "deaths": lambda plant, _: replace(plant, deaths_per_call=0.0),
    "memory_factor": lambda plant, value: replace(plant, memory_part=plant.memory_part / value, deaths_per_call=0.0),
    "unread_factor": lambda plant, _: replace(plant, unread_s=0.0),
}
"""What the settings of actions do here."""
