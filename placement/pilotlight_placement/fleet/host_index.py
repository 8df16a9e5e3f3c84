"""What hosts have to promise: the cores and memory of each node, and what is left of them, in ascending order."""

from __future__ import annotations

from bisect import bisect_left

from pilotlight_core.model.messages.node_messages import HostShare


class RankedAmounts:
    """Amounts by rank of node, ascending."""

    def __init__(self) -> None:
        self._sorted: list[tuple[int, int]] = []
        self._ranks: list[int] = []
        """Those of `_sorted`, for a fast cut."""
        self._amounts: dict[int, int] = {}

    def __getitem__(self, rank: int) -> int:
        return self._amounts[rank]

    def __contains__(self, rank: int) -> bool:
        return rank in self._amounts

    def put(self, rank: int, amount: int) -> None:
        """Set a node's amount."""
        self.drop(rank)
        self._amounts[rank] = amount
        place = bisect_left(self._sorted, (amount, rank))
        self._sorted.insert(place, (amount, rank))
        self._ranks.insert(place, rank)

    def drop(self, rank: int) -> None:
        """Forget a node, if it is known."""
        if (amount := self._amounts.pop(rank, None)) is not None:
            place = bisect_left(self._sorted, (amount, rank))
            del self._sorted[place], self._ranks[place]

    def below(self, amount: int) -> set[int]:
        """The ranks of the nodes that have less."""
        if not self._ranks:
            return set()
        return set(self._ranks[: bisect_left(self._sorted, (amount,))])

    def contents(self) -> dict[int, int]:
        return dict(self._amounts)


class HostIndex:
    """The nodes that say what they have to promise; a node that does not is in none of these, so nothing bounds it."""

    def __init__(self) -> None:
        self.memory = RankedAmounts()
        self.cpu = RankedAmounts()
        self.free_memory = RankedAmounts()
        """Less what is promised; below 0 where reports show more than that."""
        self.free_cpu = RankedAmounts()

    def put(self, rank: int, host: HostShare | None, free: HostShare | None) -> None:
        """Set what a node has, and what is left of it."""
        if host is None or free is None:
            self.drop(rank)
            return
        self.memory.put(rank, host.memory)
        self.cpu.put(rank, host.cpu_millis)
        self.change(rank, free)

    def change(self, rank: int, free: HostShare) -> None:
        """Set what is left of a node."""
        self.free_memory.put(rank, free.memory)
        self.free_cpu.put(rank, free.cpu_millis)

    def drop(self, rank: int) -> None:
        for amounts in (self.memory, self.cpu, self.free_memory, self.free_cpu):
            amounts.drop(rank)
