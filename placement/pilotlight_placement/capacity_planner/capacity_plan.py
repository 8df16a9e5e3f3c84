"""The problem and its solution: functions with rates and measured curves in, GPUs by type out.

Each function gets instances (whole devices or MIG slices) whose planned part of throughput covers its rate within its
service level. `ilp_planner` finds the cheapest plan and a bound with OR-tools; `greedy_planner` needs no solver, and
has a weaker bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pilotlight_core.model.devices import gpu_price
from pilotlight_core.model.price_book import PriceBook, standard_book
from pilotlight_placement.asks.curves import WHOLE, Curves, ThroughputPoint
from pilotlight_placement.hardware.catalogue import Catalogue, Device, standard
from pilotlight_placement.hardware.geometry import Layout

UTILISATION = 0.7
"""The planned part of an instance's throughput; the rest is headroom for bursts and failures."""
SLO_PART = 0.5
"""The part of a service level that one batch may take: a call may wait for the batch before its own."""
TOLERANCE = 1e-6
"""Of a rate: the precision of linear program solvers."""
LARGEST_GROUP = 8
"""Whole devices of one node that one instance may span."""


class CannotPlan(ValueError):
    """No measured slice serves the demand; says for which function, and why."""


@dataclass(frozen=True, kw_only=True)
class FunctionNeed:
    """The need of one function: calls per second, within `slo_ms`, on at least `least` instances."""

    function: str
    rps: float
    slo_ms: float | None = None
    least: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rps) and self.rps > 0 and self.least >= 0):
            raise ValueError(f"{self.function}: a rate is more than 0, and the least count not below 0")


@dataclass(frozen=True, kw_only=True)
class PlanningTerms:
    """Terms of planning: prices are dollars per device hour by type, those of now in the price book if missing."""

    utilisation: float = UTILISATION
    slo_part: float = SLO_PART
    prices: Mapping[str, float] | None = None
    book: PriceBook = field(default_factory=standard_book)

    def __post_init__(self) -> None:
        if not (0 < self.utilisation <= 1 and 0 < self.slo_part <= 1):
            raise ValueError("the planned part of throughput and of a service level are between 0 and 1")

    def price(self, device: Device) -> float:
        return (self.prices or {}).get(device.name, self.book.dollars(gpu_price(device.name)))


@dataclass(frozen=True, kw_only=True, eq=False)
class InstanceChoice:
    """One kind of instance for a function: a slice of a device, or several whole ones, at its best batch size."""

    device: Device
    slice: str
    """As in curves: "3g", "whole", "whole:4"."""
    point: ThroughputPoint
    price: float
    """Of the device, per hour."""

    @property
    def is_whole(self) -> bool:
        return self.slice.startswith(WHOLE)

    @cached_property
    def devices(self) -> int:
        """Whole devices that it takes; 0 for a MIG slice."""
        return int(self.slice.partition(":")[2] or 1) if self.is_whole else 0

    @cached_property
    def parts(self) -> tuple[float, float]:
        """Its parts of a device's memory slices and compute slices."""
        if self.is_whole or self.device.family is None:
            return float(self.devices), float(self.devices)
        profile = self.device.family.by_key[self.slice]
        return profile.size / self.device.family.slots, profile.compute / self.device.family.compute

    @property
    def cost(self) -> float:
        """Dollars per hour of the larger part."""
        return self.price * max(self.parts)


@dataclass(frozen=True, kw_only=True)
class FunctionDemand:
    """A need with the kinds of instances that serve it."""

    need: FunctionNeed
    capacity: float
    """Required throughput: the rate over the planned utilisation."""
    choices: tuple[InstanceChoice, ...]


@dataclass(frozen=True, kw_only=True)
class InstanceGroup:
    function: str
    choice: InstanceChoice
    count: int

    @property
    def throughput(self) -> float:
        return self.count * self.choice.point.throughput


@dataclass(frozen=True, kw_only=True)
class PlannedDevice:
    """One MIG device of a plan: its instances, and the function of each ("": free)."""

    device: Device
    layout: Layout
    functions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CapacityPlan:
    """The devices to buy, and the instances on them."""

    demands: tuple[FunctionDemand, ...]
    groups: tuple[InstanceGroup, ...]
    cuttings: tuple[PlannedDevice, ...]
    bound: float
    """No plan costs less than this, in dollars per hour."""
    method: str
    terms: PlanningTerms

    @cached_property
    def gpus(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for group in self.groups:
            if group.choice.is_whole:
                name = group.choice.device.name
                counts[name] = counts.get(name, 0) + group.choice.devices * group.count
        for cutting in self.cuttings:
            counts[cutting.device.name] = counts.get(cutting.device.name, 0) + 1
        return dict(sorted(counts.items()))

    @cached_property
    def cost(self) -> float:
        """Dollars per hour."""
        devices = {c.device.name: c.device for demand in self.demands for c in demand.choices}
        return sum(self.terms.price(devices[name]) * count for name, count in self.gpus.items())

    @property
    def is_optimal(self) -> bool:
        return self.cost <= self.bound * (1 + 1e-6) + 1e-9

    def check_integrity(self) -> None:
        """Check that every need is covered, and that every layout is legal and has exactly its instances.

        Raises:
            ValueError: naming the first fault.
        """
        placed: dict[tuple[str, str, str], int] = {}
        for cutting in self.cuttings:
            if cutting.device.family is None:
                raise ValueError(f"{cutting.device.name} cannot be cut")
            cutting.device.family.masks_of(cutting.layout)
            for instance, function in zip(cutting.layout, cutting.functions, strict=True):
                key = (function, cutting.device.name, instance.profile)
                placed[key] = placed.get(key, 0) + bool(function)
        for group in self.groups:
            key = (group.function, group.choice.device.name, group.choice.slice)
            if not group.choice.is_whole and placed.get(key, 0) != group.count:
                raise ValueError(f"{group.function}: {group.count} slices {key[1:]}, {placed.get(key, 0)} laid out")
        for demand in self.demands:
            mine = [group for group in self.groups if group.function == demand.need.function]
            if sum(group.throughput for group in mine) < demand.capacity * (1 - TOLERANCE):
                raise ValueError(f"{demand.need.function}: its throughput does not cover {demand.need.rps} per second")
            if sum(group.count for group in mine) < demand.need.least:
                raise ValueError(f"{demand.need.function}: fewer than {demand.need.least} instances")


def demands_of(
    needs: Iterable[FunctionNeed],
    curves: Mapping[str, Curves],
    terms: PlanningTerms,
    catalogue: Catalogue | None = None,
) -> tuple[FunctionDemand, ...]:
    """Each need with the measured choices that keep its service level.

    Raises:
        CannotPlan: naming the function without any.
    """
    devices = tuple((catalogue or standard()).devices.values())
    found = []
    for need in needs:
        measured = curves.get(need.function)
        choices = () if measured is None else tuple(_choices(need, measured, terms, devices))
        if not choices:
            raise CannotPlan(_why_not(need, measured, terms, devices))
        found.append(FunctionDemand(need=need, capacity=need.rps / terms.utilisation, choices=choices))
    return tuple(found)


def slices_of(device: Device) -> tuple[str, ...]:
    groups = [WHOLE, *(f"{WHOLE}:{count}" for count in range(2, LARGEST_GROUP + 1))]
    return (*groups, *(cut.profile.key for cut in device.cuts))


def _choices(
    need: FunctionNeed, measured: Curves, terms: PlanningTerms, devices: Sequence[Device]
) -> Iterable[InstanceChoice]:
    limit = None if need.slo_ms is None else need.slo_ms * terms.slo_part
    for device in devices:
        for key in slices_of(device):
            point = measured.best(device.name, key, limit)
            if point is not None:
                yield InstanceChoice(device=device, slice=key, point=point, price=terms.price(device))


def _why_not(need: FunctionNeed, measured: Curves | None, terms: PlanningTerms, devices: Sequence[Device]) -> str:
    known = [(d, key) for d in devices for key in slices_of(d) if measured is not None and measured.knows(d.name, key)]
    if not known:
        return f"{need.function}: nothing says how fast it is on any GPU"
    where = ", ".join(sorted({device.name for device, _ in known}))
    return (
        f"{need.function}: measured on {where}, but no batch takes at most {terms.slo_part:.0%} of its "
        f"{need.slo_ms:g} ms service level"
    )
