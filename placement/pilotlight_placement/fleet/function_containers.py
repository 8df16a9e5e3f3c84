"""The containers of each function: which they are, how many each node and zone has, and who avoids it where."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from pilotlight_placement.fleet.occupancy import NodeOccupancy
from pilotlight_placement.fleet.offers import Zone
from pilotlight_placement.hardware.node import PlacedContainer

NOTHING: Mapping[Zone, int] = MappingProxyType({})
NOWHERE: Mapping[int, int] = MappingProxyType({})
KeyT = TypeVar("KeyT")


class FunctionContainers:
    def __init__(self) -> None:
        self.by_function: dict[str, dict[str, PlacedContainer]] = {}
        """function -> its containers by id; functions without any are not listed."""
        self._on_node: dict[str, dict[int, int]] = {}
        self._avoided_on: dict[str, dict[int, int]] = {}
        self._in_zone: dict[str, dict[Zone, int]] = {}

    def add(self, held: PlacedContainer, place: NodeOccupancy) -> None:
        """Count a container that holds a slice of a node."""
        if held.function:
            self.by_function.setdefault(held.function, {})[held.container] = held
        self._count(held, place, 1)

    def remove(self, held: PlacedContainer, place: NodeOccupancy) -> None:
        """Count it no more."""
        if held.function:
            del self.by_function[held.function][held.container]
            if not self.by_function[held.function]:
                del self.by_function[held.function]
        self._count(held, place, -1)

    def zones(self, function: str) -> Mapping[Zone, int]:
        """A function's containers by (region, zone)."""
        return self._in_zone.get(function, NOTHING)

    def nodes_of(self, function: str) -> Mapping[int, int]:
        """A function's containers by rank of node."""
        return self._on_node.get(function, NOWHERE)

    def nodes_avoiding(self, function: str) -> Mapping[int, int]:
        """The containers that avoid a function, by rank of node."""
        return self._avoided_on.get(function, NOWHERE)

    def _count(self, held: PlacedContainer, place: NodeOccupancy, change: int) -> None:
        if held.function:
            domain = place.node.domain
            _change(self._on_node, held.function, place.rank, change)
            _change(self._in_zone, held.function, (domain.region, domain.zone), change)
        for function in held.avoid:
            _change(self._avoided_on, function, place.rank, change)


def _change(counts: dict[str, dict[KeyT, int]], function: str, key: KeyT, change: int) -> None:
    inner = counts.setdefault(function, {})
    if left := inner.get(key, 0) + change:
        inner[key] = left
    else:
        del inner[key]
        if not inner:
            del counts[function]
