"""What nodes lack of what an ask would have resident, in steps of loading (`asks.resident_ask`)."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Final

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.resident_ask import disk_steps, fetch_steps
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import in_memory

NOWHERE: Final[frozenset[int]] = frozenset()


def lacked_by_most(ask: Ask) -> int:
    """What a node lacks that has nothing of it, which no node lacks more than."""
    return sum([fetch_steps(each) for each in ask.resident])


def lack_on(fleet: Fleet, ask: Ask) -> Callable[[int], int]:
    """What the node of a rank lacks."""
    asked = [
        (
            fleet.resident.get(each.id, NOWHERE),
            fleet.resident.get(in_memory(each.id), NOWHERE),
            fetch_steps(each),
            disk_steps(each),
        )
        for each in ask.resident
    ]

    def lack(rank: int) -> int:
        return sum([0 if rank in loaded else disk if rank in there else fetch for there, loaded, fetch, disk in asked])

    return lack


def nodes_with_some(fleet: Fleet, ask: Ask) -> list[list[int]]:
    """The nodes that have some of it, by rank: first those that lack least, those that lack as much together."""
    lacks: dict[int, int] = {}
    most = lacked_by_most(ask)
    for each in ask.resident:
        there: Set[int] = fleet.resident.get(each.id, NOWHERE)
        loaded: Set[int] = fleet.resident.get(in_memory(each.id), NOWHERE) if there else NOWHERE
        fetch, disk = fetch_steps(each), disk_steps(each)
        for rank in there:
            lacks[rank] = lacks.get(rank, most) - (fetch if rank in loaded else fetch - disk)
    by_lack: dict[int, list[int]] = {}
    for rank, lack in lacks.items():
        by_lack.setdefault(lack, []).append(rank)
    return [sorted(by_lack[lack]) for lack in sorted(by_lack)]
