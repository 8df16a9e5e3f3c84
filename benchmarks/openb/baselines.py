"""The five simple policies of the published comparison, as their code computes them: whole scores, most is best.

Source: `pkg/simulator/plugin/*_score.go` of hkust-adsl/kubernetes-scheduler-simulator. BestFit's minimum-maximum
normalisation is left out: it keeps the order of whole scores. `Score` takes the fleet, a task and the nodes it fits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from benchmarks.openb.cluster import Cluster, Floats, Ints, Memo, class_of
from benchmarks.openb.gorand import GoRandom
from benchmarks.openb.trace import WHOLE, Trace

MOST_CPU = 128_000
MOST_GPU = 8_000
REFUSED = -np.inf

Choice = tuple[int, int] | None
"""Node, and which GPU if the task takes a share; None if it fits nowhere."""
Score = Callable[[Cluster, int, Ints], tuple[Floats, Ints]]
"""(fleet, kind of task, nodes that it fits) -> score and GPU for each."""


class Policy(Protocol):
    """Where the next task goes."""

    def choose(self, number: int) -> Choice:
        """The place for a task of a kind, in the fleet as it stands."""
        ...


class Best:
    """The node with the highest score, the first among equals."""

    def __init__(self, trace: Trace, cluster: Cluster, score: Score) -> None:
        self._kinds = trace.kinds
        self._cluster = cluster
        self._score = score
        self._memo = Memo(cluster, columns=2)

    def choose(self, number: int) -> Choice:
        rows = self._memo.stale(number)
        values = self._memo.values(number)
        fits = self._cluster.fits(self._kinds[number], rows)
        values[0, rows[~fits]] = REFUSED
        if (possible := rows[fits]).size:
            values[:, possible] = self._score(self._cluster, number, possible)
        best = int(values[0].argmax())
        return None if values[0, best] == REFUSED else (best, int(values[1, best]))


class Random:
    """Any node that fits, and any of its GPUs that fits a share, in the published draws."""

    def __init__(self, trace: Trace, cluster: Cluster, random: GoRandom) -> None:
        self._kinds = trace.kinds
        self._cluster = cluster
        self._random = random
        self._all = np.arange(len(cluster))

    def choose(self, number: int) -> Choice:
        kind = self._kinds[number]
        rows = np.flatnonzero(self._cluster.fits(kind, self._all))
        if not rows.size:
            return None
        row = int(rows[self._random.intn(rows.size) if rows.size > 1 else 0])
        gpu = -1
        if kind.shares:
            for seen, candidate in enumerate(np.flatnonzero(self._cluster.free[row] >= kind.milli), start=1):
                if self._random.intn(seen) == 0:
                    gpu = int(candidate)
        return row, gpu


def tightest(cluster: Cluster, milli: int, rows: Ints) -> Ints:
    """The GPU of each node with the least room for a share."""
    free = cluster.free[rows]
    found: Ints = np.where(free >= milli, free, WHOLE + 1).argmin(axis=1)
    return found


def dot_product(trace: Trace) -> Score:
    """Tetris: the less a node's free vector points where the task's does, the better."""

    def score(cluster: Cluster, number: int, rows: Ints) -> tuple[Floats, Ints]:
        kind = trace.kinds[number]
        cpu = (cluster.cpu[rows] / MOST_CPU) * (kind.cpu / MOST_CPU)
        gpu = (cluster.free[rows].sum(axis=1) / MOST_GPU) * (kind.gpu / MOST_GPU)
        return np.floor(100 * (1 - (cpu + gpu) / 2)), tightest(cluster, kind.milli, rows)

    return score


def best_fit(trace: Trace) -> Score:
    """The least CPU and GPU left, in equal weights."""

    def score(cluster: Cluster, number: int, rows: Ints) -> tuple[Floats, Ints]:
        kind = trace.kinds[number]
        cpu = (cluster.cpu[rows] - kind.cpu) / MOST_CPU * 0.5
        gpu = (cluster.free[rows].sum(axis=1) - kind.gpu) / MOST_GPU * 0.5
        return np.floor((1 - (cpu + gpu)) * 100), tightest(cluster, kind.milli, rows)

    return score


def clustering(trace: Trace) -> Score:
    """Tasks of a class together (75 alone with it, 50 mixed, 25 on an idle node, 0 beside others); then the fuller."""

    def score(cluster: Cluster, number: int, rows: Ints) -> tuple[Floats, Ints]:
        kind = trace.kinds[number]
        if not kind.count:
            return np.zeros(rows.size), np.full(rows.size, -1)
        tags = cluster.tags[rows, 1:]
        classes = (tags > 0).sum(axis=1)
        mine = tags[:, class_of(kind) - 1] > 0
        base = np.where(mine, np.where(classes == 1, 75, 50), np.where(classes == 0, 25, 0))
        fuller = 25 * (MOST_GPU - cluster.free[rows].sum(axis=1)) // MOST_GPU
        return (base + fuller).astype(np.float64), tightest(cluster, kind.milli, rows)

    return score


def packing(trace: Trace) -> Score:
    """A shared GPU with little room (50 to 100), a whole one on a used node (33 to 50), then one on an idle node."""

    def score(cluster: Cluster, number: int, rows: Ints) -> tuple[Floats, Ints]:
        kind = trace.kinds[number]
        if not kind.count:
            return np.zeros(rows.size), np.full(rows.size, -1)
        free = cluster.free[rows]
        whole = (free == WHOLE).sum(axis=1)
        idle = np.maximum(33 - whole, whole)
        used = np.sort(np.where(free >= kind.milli, free, WHOLE + 1), axis=1)[:, : kind.count]
        opened = (used == WHOLE).sum(axis=1)
        shared = np.maximum(100 - (used * 100 // WHOLE).sum(axis=1) // 10, 50)
        scores = np.where(opened > 0, np.maximum(50 - opened, 33), shared)
        scores = np.where(whole == cluster.gpus[rows], idle, scores)
        return scores.astype(np.float64), tightest(cluster, kind.milli, rows)

    return score
