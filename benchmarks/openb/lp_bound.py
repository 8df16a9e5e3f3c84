"""How much any policy could give away: a linear programme over machines of one kind and tasks of one kind.

It knows all tasks that will have come, may cut tasks and nodes into fractions, and may turn away what it likes. What it
keeps: cores and memory in all of each kind of machine, the models that a task accepts, nodes with enough GPUs and cores
for it, and how sizes fit into one GPU, since every GPU has a pattern of whole tasks (cutting stock, with columns made
as the duals ask for them: Gilmore and Gomory, Operations Research 9(6), 1961). So what is left between a policy and the
bound is fragmentation over nodes, the ignorance of what comes, and the duty to take what fits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.openb.trace import WHOLE, Kind, Machine, Trace
from benchmarks.openb.workload import workload

CORE = 1000
GIB = 1024
"""MiB. The programme counts GPUs, cores and GiB: numbers of like size, which the solver needs."""
ROUNDS = 500
CLOSE = 1e-5
"""Part of the fleet by which the programme may be below its optimum; it is added, so that the bound holds."""
OVER = 1.005
"""Arrivals count as 100 % of demand up to this part of the capacity."""


@dataclass(frozen=True, kw_only=True, order=True)
class MachineKind:
    """Machines that are alike, and their number."""

    model: str
    gpus: int
    cpu: int
    memory: int
    number: int

    def may_run(self, kind: Kind) -> bool:
        accepted = not kind.models or self.model in kind.models
        return accepted and self.gpus >= kind.count and self.cpu >= kind.cpu and self.memory >= kind.memory


def lp_bound(trace: Trace, seed: int) -> float:
    """Percent of the GPUs that can be given away at most when as many are asked for as there are."""
    return 100 * most(trace, asked(trace, seed)) * WHOLE / trace.capacity


def asked(trace: Trace, seed: int) -> Counter[Kind]:
    """The tasks for GPUs that have come at 100 % of demand, with their number."""
    arrivals = workload(trace, seed).arrivals.tolist()
    demand = np.cumsum([trace.kinds[number].gpu for number in arrivals])
    until = int(np.searchsorted(demand, OVER * trace.capacity, side="right"))
    return Counter(trace.kinds[number] for number in arrivals[:until] if trace.kinds[number].count)


def machine_kinds(machines: tuple[Machine, ...]) -> list[MachineKind]:
    """The machines with GPUs, by kind."""
    counts = Counter((m.model, m.gpus, m.cpu, m.memory) for m in machines if m.gpus)
    return [
        MachineKind(model=model, gpus=gpus, cpu=cpu, memory=memory, number=number)
        for (model, gpus, cpu, memory), number in sorted(counts.items())
    ]


def most(trace: Trace, tasks: Counter[Kind]) -> float:
    """GPUs that the programme gives away."""
    programme, gpus = Programme(machine_kinds(trace.machines), tasks), trace.capacity / WHOLE
    for _ in range(ROUNDS):
        given, missing = programme.solve()
        if missing <= CLOSE * gpus:
            return min(given + missing, gpus)
    raise RuntimeError(f"{trace.name}: {missing:.1f} GPUs are open after {ROUNDS} rounds")


class Programme:
    """The linear programme, with the patterns that are known so far."""

    def __init__(self, machines: list[MachineKind], tasks: Counter[Kind]) -> None:
        from ortools.linear_solver import pywraplp

        # GLOP gives some of these programmes up as ill-conditioned.
        self._solver: Any = pywraplp.Solver.CreateSolver("CLP")
        self._machines = machines
        self._sizes = sorted({kind.milli for kind in tasks})
        infinity = self._solver.infinity()
        self._gpus = [self._solver.Constraint(-infinity, m.gpus * m.number) for m in machines]
        self._places = [{size: self._solver.Constraint(-infinity, 0) for size in self._sizes} for _ in machines]
        """What is placed of a size on a kind of machine, less what patterns have of it."""
        cores = [self._solver.Constraint(-infinity, m.cpu / CORE * m.number) for m in machines]
        memory = [self._solver.Constraint(-infinity, m.memory / GIB * m.number) for m in machines]
        self._solver.Objective().SetMaximization()
        for kind, number in sorted(tasks.items()):
            there = self._solver.Constraint(-infinity, number)
            for index, machine in enumerate(machines):
                if not machine.may_run(kind):
                    continue
                placed = self._solver.NumVar(0, infinity, "")
                there.SetCoefficient(placed, 1)
                self._places[index][kind.milli].SetCoefficient(placed, kind.count)
                cores[index].SetCoefficient(placed, kind.cpu / CORE)
                memory[index].SetCoefficient(placed, kind.memory / GIB)
                self._solver.Objective().SetCoefficient(placed, kind.gpu / WHOLE)
        for index in range(len(machines)):
            for size in self._sizes:
                self._add(index, {size: WHOLE // size})

    def _add(self, index: int, pattern: dict[int, int]) -> None:
        """Let GPUs of a kind of machine have a pattern: sizes, and how many of each."""
        used = self._solver.NumVar(0, self._solver.infinity(), "")
        self._gpus[index].SetCoefficient(used, 1)
        for size, number in pattern.items():
            self._places[index][size].SetCoefficient(used, -number)

    def solve(self) -> tuple[float, float]:
        """What is given away, and at most so much more with patterns not known yet, of which the best are added."""
        if self._solver.Solve() != self._solver.OPTIMAL:
            raise RuntimeError("the linear programme has no solution")
        given, missing = self._solver.Objective().Value(), 0.0
        found = []
        for index, machine in enumerate(self._machines):
            worth = {size: self._places[index][size].dual_value() for size in self._sizes}
            value, pattern = best_pattern(worth)
            gain = value - self._gpus[index].dual_value()
            if gain > 1e-9:
                missing += gain * machine.gpus * machine.number
                found.append((index, pattern))
        for index, pattern in found:
            self._add(index, pattern)
        return given, missing


def best_pattern(worth: dict[int, float]) -> tuple[float, dict[int, int]]:
    """The tasks of one GPU that are worth most together, by size: an unbounded knapsack."""
    best = [0.0] * (WHOLE + 1)
    last = [0] * (WHOLE + 1)
    useful = [(size, value) for size, value in worth.items() if value > 0]
    for room in range(1, WHOLE + 1):
        best[room] = best[room - 1]
        for size, value in useful:
            if size <= room and best[room - size] + value > best[room]:
                best[room], last[room] = best[room - size] + value, size
    pattern: dict[int, int] = {}
    room = WHOLE
    while room:
        if (size := last[room]) and best[room] > best[room - 1]:
            pattern[size] = pattern.get(size, 0) + 1
            room -= size
        else:
            room -= 1
    return best[WHOLE], pattern
