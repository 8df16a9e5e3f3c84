"""FGD as published: the node where the fragmentation of Weng et al. (USENIX ATC 2023) grows least, in whole scores.

F(node) is the sum over typical tasks of p times what is stranded for them: all that is free if the task does not fit
the node (or needs no GPU), else what is free on GPUs with less than it asks for. For tasks of one GPU this comes to

    F = sum over GPUs of g * (1 - A[C, g]),   A[C, g] = sum of p over accepted tasks with cpu <= C and milli <= g

and whole GPUs that tasks of several can use together take their p off again. So F is read from tables. The score is the
whole part of 100 * sigmoid(drop / 1000); the ties that this makes are part of the policy.
"""

from __future__ import annotations

import numpy as np

from benchmarks.openb.baselines import Score
from benchmarks.openb.cluster import Cluster, Floats, Ints, after_whole
from benchmarks.openb.trace import MOST_GPUS, WHOLE, Trace


class Fragmentation:
    """F for rows of nodes, from tables over model, cores and GPU room."""

    def __init__(self, trace: Trace, models: tuple[str, ...]) -> None:
        self._steps: Ints = np.array(sorted({task.cpu for task in trace.typical}))
        shape = (len(models), len(self._steps) + 1)
        self._one: Floats = np.zeros((*shape, WHOLE + 1))
        self._several: Floats = np.zeros((*shape, MOST_GPUS + 1))
        for task in trace.typical:
            usable = [number for number, model in enumerate(models) if task.count and task.may_use(model)]
            step = int(np.searchsorted(self._steps, task.cpu)) + 1
            if task.count == 1:
                self._one[usable, step:, task.milli :] += task.weight
            elif task.count:
                self._several[usable, step:, task.count :] += task.weight

    def of(self, model: Ints, cpu: Ints, free: Ints) -> Floats:
        """F of nodes: (n,), (n,), (n, GPUs) -> (n,) milli-GPU."""
        step = np.searchsorted(self._steps, cpu, side="right")
        single = (free * (1 - self._one[model[:, None], step[:, None], free])).sum(axis=1)
        return self._together(single, model, step, (free == WHOLE).sum(axis=1))

    def shared(self, model: Ints, cpu: Ints, free: Ints, milli: int) -> Floats:
        """F of nodes after a share of `milli` on each GPU in turn: (n, GPUs); nonsense where it does not fit."""
        step = np.searchsorted(self._steps, cpu, side="right")
        table = self._one[model, step]
        rows = np.arange(len(model))[:, None]
        kept = free * (1 - table[rows, free])
        less = np.maximum(free - milli, 0)
        single = kept.sum(axis=1, keepdims=True) - kept + less * (1 - table[rows, less])
        whole = (free == WHOLE).sum(axis=1, keepdims=True) - (free == WHOLE)
        return self._together(single, model[:, None], step[:, None], whole)

    def _together(self, single: Floats, model: Ints, step: Ints, whole: Ints) -> Floats:
        return single - WHOLE * whole * self._several[model, step, whole]


def fgd(trace: Trace, cluster: Cluster) -> Score:
    """The score, and for a share the GPU where it is highest, the first among equals."""
    fragmentation = Fragmentation(trace, cluster.models)

    def score(cluster: Cluster, number: int, rows: Ints) -> tuple[Floats, Ints]:
        kind = trace.kinds[number]
        model, cpu, free = cluster.model[rows], cluster.cpu[rows], cluster.free[rows]
        before = fragmentation.of(model, cpu, free)
        if not kind.shares:
            after = fragmentation.of(model, cpu - kind.cpu, after_whole(free, kind.count))
            return _whole(before - after), np.full(rows.size, -1)
        drops = before[:, None] - fragmentation.shared(model, cpu - kind.cpu, free, kind.milli)
        scores = np.where(free >= kind.milli, _whole(drops), -1)
        gpus: Ints = scores.argmax(axis=1)
        return scores[np.arange(rows.size), gpus], gpus

    return score


def _whole(drop: Floats) -> Floats:
    """The published score of a drop in F. Rounded first: nothing changed must be 50, not the 49 of a last bit."""
    scores: Floats = np.floor(100 / (1 + np.exp(-np.round(drop, 6) / 1000)))
    return scores
