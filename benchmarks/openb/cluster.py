"""The simulated fleet as arrays, one row a node in the order that breaks ties."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.openb.trace import MOST_GPUS, WHOLE, Kind, Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

CLASSES = 6
"""Without GPU, a share, one, two, up to four, more: what the clustering policy keeps together."""


class Cluster:
    """What is free on each node. Columns of `free` beyond a node's GPUs hold 0."""

    def __init__(self, trace: Trace, order: Sequence[int]) -> None:
        machines = [trace.machines[number] for number in order]
        self.models = tuple(sorted({machine.model for machine in machines}))
        self.model: Ints = np.array([self.models.index(machine.model) for machine in machines])
        self.gpus: Ints = np.array([machine.gpus for machine in machines])
        self.cpu: Ints = np.array([machine.cpu for machine in machines])
        self.memory: Ints = np.array([machine.memory for machine in machines])
        self.free: Ints = np.where(np.arange(MOST_GPUS) < self.gpus[:, None], WHOLE, 0)
        self.tags: Ints = np.zeros((len(machines), CLASSES), np.int64)
        """Tasks of each class on a node."""
        self.version: Ints = np.zeros(len(machines), np.int64)
        """Counts what was placed on a node: what was computed for an older version is stale."""
        self.used = 0
        """Milli-GPU given away."""

    def __len__(self) -> int:
        return len(self.cpu)

    def accessible(self, kind: Kind) -> Bools:
        """By model: whether the task accepts it."""
        return np.array([not kind.count or not kind.models or model in kind.models for model in self.models])

    def fits(self, kind: Kind, rows: Ints) -> Bools:
        """Which of these nodes can take the task."""
        fits: Bools = (self.cpu[rows] >= kind.cpu) & (self.memory[rows] >= kind.memory)
        if kind.count:
            fits &= self.accessible(kind)[self.model[rows]]
            fits &= (self.free[rows] >= kind.milli).sum(axis=1) >= kind.count
        return fits

    def take(self, kind: Kind, row: int, gpu: int) -> None:
        """Place a task; `gpu` matters for shares only, whole GPUs are taken from the first on."""
        self.cpu[row] -= kind.cpu
        self.memory[row] -= kind.memory
        chosen = [gpu] if kind.shares else np.flatnonzero(self.free[row] == WHOLE)[: kind.count]
        self.free[row, chosen] -= kind.milli
        self.tags[row, class_of(kind)] += 1
        self.version[row] += 1
        self.used += kind.gpu
        assert self.cpu[row] >= 0, row
        assert self.memory[row] >= 0, row
        assert self.free[row].min() >= 0, row


def class_of(kind: Kind) -> int:
    """The affinity class of a task."""
    if not kind.count:
        return 0
    if kind.shares:
        return 1
    return {1: 2, 2: 3, 3: 4, 4: 4}.get(kind.count, 5)


def after_whole(free: Ints, count: int) -> Ints:
    """What stays free when each node gives its first `count` whole GPUs."""
    whole = free == WHOLE
    left: Ints = np.where(whole & (whole.cumsum(axis=1) <= count), 0, free)
    return left


class Memo:
    """Scores by kind of task and node, computed again only where the node has changed since."""

    def __init__(self, cluster: Cluster, columns: int) -> None:
        self._cluster = cluster
        self._columns = columns
        self._values: dict[int, Floats] = {}
        self._seen: dict[int, Ints] = {}

    def stale(self, number: int) -> Ints:
        """The nodes whose values for a kind must be computed; they count as computed from now on."""
        seen = self._seen.get(number)
        if seen is None:
            seen = self._seen[number] = np.full(len(self._cluster), -1)
            self._values[number] = np.zeros((self._columns, len(self._cluster)))
        rows: Ints = np.flatnonzero(seen != self._cluster.version)
        seen[rows] = self._cluster.version[rows]
        return rows

    def values(self, number: int) -> Floats:
        """The values for a kind: (columns, nodes)."""
        return self._values[number]
