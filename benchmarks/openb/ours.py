"""Pilotlight's policy on the openb fleet: the costs of `share_fragmentation`, for many nodes at once.

It sees what FGD sees: the table of typical tasks, the fleet, and the task that has just come. The product asks
`Outlook.cheapest` for one place; here the same sums are done on arrays, and a test holds the two to each other.
"""

from __future__ import annotations

import numpy as np

from benchmarks.openb.baselines import REFUSED, Choice
from benchmarks.openb.cluster import Cluster, Floats, Ints, Memo, after_whole
from benchmarks.openb.trace import MOST_GPUS, Kind, Trace
from pilotlight_placement.fragmentation.scarcity import claims, prices
from pilotlight_placement.fragmentation.share_fragmentation import (
    ALIKE,
    CORE,
    GRAIN,
    HOSTING,
    MOST_CORES,
    TIDINESS,
    WHOLE,
    outlook,
)

REPRICED_EVERY = 25
"""Tasks between two looks at which models are scarce."""


class Worth:
    """`Outlook.worth` and `Outlook.hosting` on arrays: the last axis of `free` is the node's GPUs."""

    def __init__(self, trace: Trace, models: tuple[str, ...]) -> None:
        seen = outlook(trace.typical, models)
        self._tables: Floats = np.array([seen.tables[model] for model in models])
        self._best: Floats = self._tables[:, :, -1].copy()
        self._steps: Ints = np.array(sorted({task.cpu for task in seen.several}), np.int64)
        self._several: Floats = np.zeros((len(models), len(self._steps) + 1, MOST_GPUS + 1))
        for task in seen.several:
            usable = [number for number, model in enumerate(models) if task.may_use(model)]
            self._several[usable, int(np.searchsorted(self._steps, task.cpu)) + 1 :, task.count :] += task.weight

    def of(self, model: Ints, cpu: Ints, free: Ints) -> Floats:
        """Milli-GPU that nodes can expect to carry: (n,), (n,), (n, GPUs) -> (n,)."""
        best = self._best[model[:, None], free // GRAIN]
        total = best.sum(axis=1, keepdims=True)
        worth: Floats = self._shared_out(model[:, None], cpu[:, None], free, best, total).sum(axis=1)
        return worth

    def after_share(self, model: Ints, cpu: Ints, free: Ints, milli: int) -> Floats:
        """The same after a share of `milli` on each GPU in turn: (n, GPUs); nonsense where it does not fit."""
        left = np.repeat(free[:, None, :], free.shape[1], axis=1)
        diagonal = np.arange(free.shape[1])
        left[:, diagonal, diagonal] = np.maximum(free - milli, 0)
        best = self._best[model[:, None, None], left // GRAIN]
        total = best.sum(axis=2, keepdims=True)
        worth: Floats = self._shared_out(model[:, None, None], cpu[:, None, None], left, best, total).sum(axis=2)
        return worth

    def hosting(self, model: Ints, cpu: Ints, whole: Ints) -> Floats:
        """Milli-GPU of whole devices by the typical tasks of several that they could host."""
        step = np.searchsorted(self._steps, cpu, side="right")
        found: Floats = WHOLE * whole * self._several[model, step, whole]
        return found

    def _shared_out(self, model: Ints, cpu: Ints, free: Ints, best: Floats, total: Floats) -> Floats:
        """What each GPU can expect with its part of the cores."""
        cores = np.minimum(cpu * best / np.where(total > 0, total, 1) / CORE, MOST_CORES)
        column = np.minimum(cores.astype(np.int64), MOST_CORES - 1)
        row = free // GRAIN
        low = self._tables[model, row, column]
        carried: Floats = low + (self._tables[model, row, column + 1] - low) * (cores - column)
        return np.where(total > 0, carried, 0.0)


class Ours:
    """The place that costs those who come later least; the first among those that are alike."""

    def __init__(self, trace: Trace, cluster: Cluster) -> None:
        self._kinds = trace.kinds
        self._cluster = cluster
        self._worth = Worth(trace, cluster.models)
        self._memo = Memo(cluster, columns=3)
        self._claims = claims(cluster.models, demand(trace))
        self._now = self._worth.of(cluster.model, cluster.cpu, cluster.free)
        self._counted = cluster.version.copy()
        self._asked = 0
        self._dear: Floats = np.ones(len(cluster))
        """1 and the price of the node's model."""

    def choose(self, number: int) -> Choice:
        self._catch_up()
        kind = self._kinds[number]
        rows = self._memo.stale(number)
        values = self._memo.values(number)
        fits = self._cluster.fits(kind, rows)
        values[1, rows[~fits]] = -REFUSED
        if (possible := rows[fits]).size:
            values[:, possible] = self.costs(kind, possible)
        costs = np.rint((values[0] * self._dear + values[1]) / ALIKE)
        best = int(costs.argmin())
        return None if costs[best] == -REFUSED else (best, int(values[2, best]))

    def costs(self, kind: Kind, rows: Ints) -> tuple[Floats, Floats, Ints]:
        """For nodes that a task fits: worth lost, the other costs, and the GPU for a share."""
        model, cpu, free = self._cluster.model[rows], self._cluster.cpu[rows], self._cluster.free[rows]
        left_cpu = cpu - kind.cpu
        whole = (free == WHOLE).sum(axis=1)
        hosted = self._worth.hosting(model, cpu, whole)
        if kind.shares:
            lost = self._now[rows, None] - self._worth.after_share(model, left_cpu, free, kind.milli)
            still = self._worth.hosting(model[:, None], left_cpu[:, None], whole[:, None] - (free == WHOLE))
            other = HOSTING * (hosted[:, None] - still)
            dear = self._dear[rows, None]
            total = np.where(free >= kind.milli, np.round(lost * dear + other, 9), np.inf)
            gpus: Ints = total.argmin(axis=1)
            line = np.arange(rows.size)
            return lost[line, gpus], other[line, gpus], gpus
        left = after_whole(free, kind.count)
        lost = self._now[rows] - self._worth.of(model, left_cpu, left)
        other = HOSTING * (hosted - self._worth.hosting(model, left_cpu, whole - kind.count))
        if not kind.count:
            other += TIDINESS[0] * left.sum(axis=1) + TIDINESS[1] * left_cpu
        return lost, other, np.full(rows.size, -1)

    def _catch_up(self) -> None:
        """Count what was placed since, and now and then look which models are scarce."""
        changed = np.flatnonzero(self._counted != self._cluster.version)
        if changed.size:
            fleet = self._cluster
            self._now[changed] = self._worth.of(fleet.model[changed], fleet.cpu[changed], fleet.free[changed])
            self._counted[changed] = fleet.version[changed]
        if self._asked % REPRICED_EVERY == 0:
            models = self._cluster.models
            room = np.bincount(self._cluster.model, weights=self._now, minlength=len(models))
            found = prices(self._claims, dict(zip(models, room.tolist(), strict=True)))
            self._dear = 1 + np.array([found[model] for model in models])[self._cluster.model]
        self._asked += 1


def demand(trace: Trace) -> dict[frozenset[str], float]:
    """The typical demand for milli-GPU by the models that it accepts."""
    found: dict[frozenset[str], float] = {}
    for task in trace.typical:
        if task.count:
            found[task.models] = found.get(task.models, 0.0) + task.weight * task.count * task.milli
    return found
