"""The purchases of a greedy planner, and their worth to the functions that are not covered yet.

An offer is a device in one full layout, or the devices of one whole instance. `filled` gives each slice to the function
that gains most from it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pilotlight_placement.capacity_planner.capacity_plan import FunctionDemand, InstanceChoice
from pilotlight_placement.capacity_planner.mig_layouts import full_cuts
from pilotlight_placement.hardware.geometry import Layout

MOST_SLICES = 8
"""The largest number of slices of a device."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PurchaseOffer:
    """One purchase, with the choices that its slices would be."""

    choice: InstanceChoice
    """One of `served`: for the device and its price."""
    layout: Layout
    """Empty for whole devices."""
    slices: tuple[str, ...]
    served: Mapping[tuple[str, str], InstanceChoice]

    @property
    def price(self) -> float:
        return self.choice.price * max(1, self.choice.devices)


@dataclass(frozen=True, kw_only=True)
class FilledOffer:
    """An offer with an owner for each slice ("" for none), and its worth per dollar."""

    offer: PurchaseOffer
    owners: tuple[str, ...]
    value: float


class Gains:
    """For each kind of slice, the functions sorted by their gain from it, as demands are covered."""

    def __init__(self, offers: Sequence[PurchaseOffer], rest: Mapping[str, float], worth: Mapping[str, float]) -> None:
        self._worth = worth
        self._now: dict[tuple[int, str, str], float] = {}
        self._order: dict[tuple[int, str], list[tuple[float, str]]] = {}
        self._slices: dict[str, list[tuple[int, InstanceChoice]]] = {}
        for served in {id(offer.served): offer.served for offer in offers}.values():
            for (function, _), choice in served.items():
                self._slices.setdefault(function, []).append((id(served), choice))
        for function, missing_now in rest.items():
            self.change(function, missing_now)

    def change(self, function: str, missing_now: float) -> None:
        """Set the throughput that a function still lacks; at 0 it gains nothing."""
        for table, choice in self._slices[function]:
            order = self._order.setdefault((table, choice.slice), [])
            before = self._now.pop((table, choice.slice, function), None)
            if before is not None:
                del order[bisect_left(order, (before, function))]
            if missing_now > 0:
                gain = self._worth[function] * min(choice.point.throughput, missing_now)
                self._now[table, choice.slice, function] = gain
                insort(order, (gain, function))

    def most(self, offer: PurchaseOffer, key: str) -> list[tuple[float, str]]:
        """Worth and function, most first, for as many as a device could have slices."""
        return self._order[id(offer.served), key][: -MOST_SLICES - 1 : -1]


def offers_of(demands: Sequence[FunctionDemand]) -> Iterator[PurchaseOffer]:
    cut: dict[str, tuple[InstanceChoice, dict[tuple[str, str], InstanceChoice]]] = {}
    for demand in demands:
        for choice in demand.choices:
            if choice.is_whole:
                function = demand.need.function
                yield PurchaseOffer(
                    choice=choice, layout=(), served={(function, choice.slice): choice}, slices=(choice.slice,)
                )
            else:
                served = cut.setdefault(choice.device.name, (choice, {}))[1]
                served[demand.need.function, choice.slice] = choice
    for _, (choice, served) in sorted(cut.items()):
        if choice.device.family is not None:
            by_key = choice.device.family.by_key
            for layout in full_cuts(choice.device.family, tuple(sorted({key for _, key in served}))):
                ordered = tuple(sorted(layout, key=lambda at: (-by_key[at.profile].compute, at.start)))
                slices = tuple(at.profile for at in ordered)
                yield PurchaseOffer(choice=choice, layout=ordered, served=served, slices=slices)


def filled(offer: PurchaseOffer, gains: Gains, rest: Mapping[str, float], worth: Mapping[str, float]) -> FilledOffer:
    left: dict[str, float] = {}
    owners: list[str] = []
    value = 0.0
    for key in offer.slices:
        found = [item for item in gains.most(offer, key) if item[1] not in left][:1]
        found += [
            (worth[function] * min(offer.served[function, key].point.throughput, missing_now), function)
            for function, missing_now in left.items()
            if missing_now > 0 and (function, key) in offer.served
        ]
        best, owner = max(found, default=(0.0, ""))
        owners.append(owner)
        if owner:
            value += best
            left[owner] = left.get(owner, rest[owner]) - offer.served[owner, key].point.throughput
    return FilledOffer(offer=offer, owners=tuple(owners), value=value / offer.price)
