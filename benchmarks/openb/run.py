"""One run: all tasks of a workload through one policy, and what of the fleet was given away at each level of demand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.openb import baselines
from benchmarks.openb.baselines import Best, Policy, Random
from benchmarks.openb.cluster import Cluster, Floats
from benchmarks.openb.fgd import fgd
from benchmarks.openb.ours import Ours
from benchmarks.openb.trace import Trace
from benchmarks.openb.workload import Workload, workload

POLICIES = ("random", "dotprod", "clustering", "packing", "bestfit", "fgd", "ours")
LEVELS = 131
"""Demand from 0 to 130 % of capacity."""
FULL = 100


@dataclass(frozen=True, kw_only=True)
class Run:
    """What came of one trace, policy and seed."""

    trace: str
    policy: str
    seed: int
    curve: Floats
    """Allocated percent of the fleet's GPUs by percent of demand that has come; NaN where nothing fell."""
    refused: int
    """Tasks for which there was no room up to FULL."""

    @property
    def allocated(self) -> float:
        """Percent of the GPUs that are given away when as many are asked for as there are.

        Where no arrival is so near (a fleet of a few GPUs), the last one before.
        """
        until = self.curve[: FULL + 1]
        known = until[~np.isnan(until)]
        return float(known[-1]) if known.size else 0.0


def run(trace: Trace, policy: str, seed: int) -> Run:
    """Place one workload."""
    work = workload(trace, seed)
    cluster = Cluster(trace, work.nodes)
    deciding = make(policy, trace, cluster, work)
    used = np.zeros(len(work.arrivals))
    placed = np.zeros(len(work.arrivals), np.bool_)
    for step, number in enumerate(work.arrivals.tolist()):
        if (choice := deciding.choose(number)) is not None:
            cluster.take(trace.kinds[number], *choice)
            placed[step] = True
        used[step] = cluster.used
    asked = np.cumsum([trace.kinds[number].gpu for number in work.arrivals.tolist()])
    full = asked <= trace.capacity
    return Run(
        trace=trace.name,
        policy=policy,
        seed=seed,
        curve=curve(asked / trace.capacity * 100, used / trace.capacity * 100),
        refused=int((full & ~placed).sum()),
    )


def make(policy: str, trace: Trace, cluster: Cluster, work: Workload) -> Policy:
    """A policy by its name."""
    if policy == "random":
        return Random(trace, cluster, work.random)
    if policy == "ours":
        return Ours(trace, work.nodes)
    scores = {
        "dotprod": baselines.dot_product,
        "clustering": baselines.clustering,
        "packing": baselines.packing,
        "bestfit": baselines.best_fit,
    }
    return Best(trace, cluster, fgd(trace, cluster) if policy == "fgd" else scores[policy](trace))


def curve(asked: Floats, used: Floats) -> Floats:
    """The mean of `used` over the arrivals at each whole percent of demand, as the published analysis rounds it."""
    levels = np.round(asked)
    shares = np.round(used, 2)
    found = np.full(LEVELS, np.nan)
    for level in range(LEVELS):
        here = levels == level
        if not here.any():
            here = np.abs(levels - level) <= 1
        if here.any():
            found[level] = round(float(shares[here].mean()), 2)
    return found
