"""What the free devices of a node can carry with what is left of its host, by what typical asks need of both.

Devices without cores or memory beside them are stranded. An ask that needs n cores for each device (as much for a part
of one as its part) can use at most C / D / n of D devices that have C cores together. With typical asks of weight p

    kappa(x) = sum of p * min(1, x / n) / sum of p,   carried(D, C, M) = D * kappa_cores(C / D) * kappa_memory(M / D)

A place costs what is carried before it less what is carried after it: a container that needs many cores goes where
cores are plentiful beside the devices that are left, one without a GPU where no device needs them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from pilotlight_core.model.messages.node_messages import HostShare

QUARTERS = 4
"""Free devices are counted in quarters, so that many nodes are alike."""
CORE = 1000
GIB = 2**30
CORE_BITS = 4
"""Cores that are left are rounded down to so many leading bits, 8 steps per octave; memory to MEMORY_BITS."""
MEMORY_BITS = 3


@dataclass(frozen=True, eq=False)
class HostRoom:
    """What is free on a node, rounded: nodes with one room cost the same. Made by `room_of`, one of each."""

    quarters: int
    """Of devices, all of the node's together."""
    cores: int
    """-1: the host does not say what there is, so nothing bounds it."""
    gib: int
    kind: str
    """The device that the node's GPUs are; of several kinds the first; "" without GPUs."""


@lru_cache(maxsize=65_536)
def room_of(quarters: int, cores: int, gib: int, kind: str) -> HostRoom:
    """The one room with these figures, so that rooms are compared by identity: decisions look up many."""
    return HostRoom(quarters, cores, gib, kind)


NOTHING_KNOWN = room_of(0, -1, 0, "")


def host_room(devices: float, left: HostShare | None, kind: str) -> HostRoom:
    """The room of a node with so many free devices, and what is left of its host."""
    quarters = max(1, round(devices * QUARTERS)) if devices > 0 else 0
    if left is None:
        return room_of(quarters, -1, 0, kind)
    cores, gib = max(0, left.cpu_millis) // CORE, max(0, left.memory) // GIB
    return room_of(quarters, leading_bits(cores, CORE_BITS), leading_bits(gib, MEMORY_BITS), kind)


def leading_bits(count: int, bits: int) -> int:
    """A count rounded down to its leading bits; exact below 2**bits."""
    rest = max(0, count.bit_length() - bits)
    return count >> rest << rest


class NeedCurve:
    """kappa: the part of a device that typical asks could use with so much of a host's resource beside it."""

    def __init__(self, needs: Iterable[tuple[float, float]]) -> None:
        """`needs` has (need for each device, weight) of the typical asks; without any nothing is needed."""
        ordered = sorted((need, weight) for need, weight in needs if weight > 0)
        self._needs = [need for need, _ in ordered]
        self._total = sum(weight for _, weight in ordered)
        self._met = [0.0, *accumulate(weight for _, weight in ordered)]
        slopes = [weight / need if need else 0.0 for need, weight in ordered]
        self._slopes = [sum(slopes), *(sum(slopes) - done for done in accumulate(slopes))]

    def at(self, beside: float) -> float:
        if not self._total:
            return 1.0
        beside = max(0.0, beside)
        count = bisect_right(self._needs, beside)
        return (self._met[count] + beside * max(0.0, self._slopes[count])) / self._total


class HostNeeds:
    """What typical asks need of the host for each device of one kind."""

    def __init__(self, asks: Iterable[tuple[float, float, HostShare]]) -> None:
        """`asks` has (weight, devices, what it needs of its host) of the typical asks."""
        given = [(weight * devices, devices, need) for weight, devices, need in asks if devices > 0]
        self._cores = NeedCurve((need.cpu_millis / CORE / devices, weight) for weight, devices, need in given)
        self._memory = NeedCurve((need.memory / GIB / devices, weight) for weight, devices, need in given)
        self._before: dict[HostRoom, float] = {}

    def carried(self, devices: float, cores: float, gib: float) -> float:
        """The devices' worth that free devices can carry with what is left beside them."""
        if devices <= 0:
            return 0.0
        return devices * self._cores.at(cores / devices) * self._memory.at(gib / devices)

    def lost(self, room: HostRoom, devices: float, need: HostShare) -> float:
        """What a node can carry less after so many of its devices, and so much of its host, are taken."""
        free = room.quarters / QUARTERS
        left = max(0.0, free - devices)
        if room.cores < 0:
            return free - left
        if (before := self._before.get(room)) is None:
            before = self._before[room] = self.carried(free, room.cores, room.gib)
        return before - self.carried(left, room.cores - need.cpu_millis / CORE, room.gib - need.memory / GIB)
