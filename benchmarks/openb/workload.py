"""The published protocol: which tasks come in which order, and in which fixed order nodes break ties, for a seed.

As in `Simulate`, `TunePodsByNodeTotalResource` and `syncClusterResourceList` of the paper's simulator
(hkust-adsl/kubernetes-scheduler-simulator): the tasks by name, shuffled; random copies appended until the demand is
INFLATION times the capacity, or random ones removed; then a random rank for each node. No task leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.openb.gorand import GoRandom
from benchmarks.openb.trace import Trace

INFLATION = 1.3
SEEDS = tuple(range(42, 52))
LOGGED = 1
"""Numbers that the simulator draws before it shuffles: one goes into its log."""
WATCHES = 10
"""Numbers drawn before the nodes are ranked: each of the scheduler's ten informers draws the timeout of its watch."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Tasks in the order in which they come (indices into the trace's kinds), nodes in the order that breaks ties."""

    arrivals: NDArray[np.int64]
    nodes: tuple[int, ...]
    random: GoRandom
    """The generator where the published run left it: the random policy draws on."""


def workload(trace: Trace, seed: int) -> Workload:
    """The workload of one run."""
    random = GoRandom(seed)
    for _ in range(LOGGED):
        random.int63()
    order = list(range(len(trace.pods)))
    random.shuffle(order)
    arrivals = [trace.pods[pod] for pod in order]
    tune(arrivals, trace, random)
    for _ in range(WATCHES):
        random.int63()
    ranks = random.permutation(len(trace.machines))
    nodes = sorted(range(len(ranks)), key=ranks.__getitem__)
    return Workload(arrivals=np.array(arrivals, np.int64), nodes=tuple(nodes), random=random)


def tune(arrivals: list[int], trace: Trace, random: GoRandom) -> None:
    """Append copies of tasks, or remove tasks, until the demand is INFLATION times the capacity."""
    demand = sum(trace.kinds[kind].gpu for kind in arrivals)
    wanted = INFLATION * trace.capacity
    if demand < wanted:
        arrivals += copies(trace, random, wanted - demand)
    while demand > wanted:
        demand -= trace.kinds[arrivals.pop(random.intn(len(arrivals)))].gpu


def copies(trace: Trace, random: GoRandom, wanted: float) -> list[int]:
    """Random tasks of the trace until the next would exceed so many milli-GPU."""
    found: list[int] = []
    while True:
        number = trace.pods[random.intn(len(trace.pods))]
        # The simulator looks at one GPU of the next task here, not at all of them.
        if trace.kinds[number].milli > wanted:
            return found
        wanted -= trace.kinds[number].gpu
        found.append(number)
