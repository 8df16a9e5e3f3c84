"""How often an equal version of a batching function is called back, on devices that differ, as containers come and go.

Made-up traffic through the judge that judges real rollouts. Calls come at random to the new version and its twin, a
tenth each, and to the rest of the old version. Each side has containers of its own, on devices whose speeds differ by
`--spread` (of logarithms); they form batches of what waits, whose calls share their cost. As calls rise each side gets
a second container, which starts cold, is slow in its first calls, and goes again as they fall.

    equal               the part of rollouts that are called back, as the platform compares: with a twin, and what is
                        learnt of devices before
    unlearnt            the same where the old version has too few containers to learn of: 5 % are tolerated
    without_twin        a mutant: compared with all of the old version, whose batches are larger
    without_tolerance   a mutant: nothing is tolerated
    equal_at_most       with 95 % confidence

--runs of each (100), --calls compared of both sides (6,000).
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks import report
from benchmarks.rollout_traffic import FUNCTION, ROLLOUT, running_rollout
from benchmarks.rollouts import upper_bound
from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm, RolloutTerms
from pilotlight_gateway.judging.decisions import Action, DecisionFacts, decide
from pilotlight_gateway.judging.evidence import fold, start

CALLS_PER_S, PART = 100.0, 0.1
"""Of all sides together; the new version's part, and the twin's."""
LARGEST_BATCH, WAIT_S = 8, 0.015
BATCH_S, ITEM_S, NOISE = 0.04, 0.001, 0.05
"""What a batch takes, what each of its calls adds, and how far the logarithms of both together stray."""
DAY_S, WAVE = 240.0, 0.5
"""Calls rise and fall by half, and each side has a second container while they are many."""
COLD_S, FIRST_CALLS, SLOWER = 3.0, 20, 1.5
"""How long a container starts; its first calls, and how much longer they take."""
DEVICES = 6
"""Containers of the old version that are learnt of, before anything is compared."""
LEARNT_S = 40.0


class Setting(NamedTuple):
    """How equal versions are compared."""

    name: str
    twin: bool = True
    learns: bool = True
    tolerance: float | None = None


SETTINGS = (
    Setting("equal"),
    Setting("unlearnt", learns=False),
    Setting("without_twin", twin=False),
    Setting("without_tolerance", tolerance=0.0),
)


class Task(NamedTuple):
    """One run, for another process."""

    setting: Setting
    calls: int
    spread: float
    seed: tuple[int, ...]


@dataclass
class Container:
    """One, on a device of its own."""

    name: str
    speed: float
    free_at: float
    """When it may begin a batch."""
    calls: int = 0
    batches: int = 0


@dataclass
class Side:
    """The calls of one side, in batches."""

    arm: Arm
    part: float
    rho: float
    spread: float
    generator: np.random.Generator
    containers: int = 1
    """That it always has."""

    def run(self, begins: float, seconds: float) -> list[ComparedCall]:
        """Its calls, each as it ended."""
        arrivals = self._arrivals(begins, seconds)
        there = [self._container(number, begins) for number in range(self.containers)]
        found: list[ComparedCall] = []
        place, made = 0, len(there)
        while place < len(arrivals):
            first = arrivals[place]
            wanted = self.containers + (math.sin(2 * math.pi * first / DAY_S) > 0.0)
            if len(there) < wanted:
                there.append(self._container(made, first + COLD_S))
                made += 1
            elif len(there) > wanted:
                there.pop()
            one = min(there, key=lambda each: each.free_at)
            size, begun = batch_of(arrivals, place, one.free_at)
            found += self._ended(one, arrivals[place : place + size], begun)
            place += size
        return found

    def _arrivals(self, begins: float, seconds: float) -> list[float]:
        most = CALLS_PER_S * self.part * (1.0 + WAVE)
        count = self.generator.poisson(most * seconds)
        at = begins + np.sort(self.generator.random(count)) * seconds
        kept = self.generator.random(count) * (1.0 + WAVE) < 1.0 + WAVE * np.sin(2 * math.pi * at / DAY_S)
        return [float(each) for each in at[kept]]

    def _container(self, number: int, ready_at: float) -> Container:
        return Container(f"{self.arm}-{number}", math.exp(self.spread * self.generator.standard_normal()), ready_at)

    def _ended(self, one: Container, arrivals: list[float], begun: float) -> Iterator[ComparedCall]:
        """The calls of a batch."""
        size, cold = len(arrivals), not one.batches
        slower = SLOWER if one.calls < FIRST_CALLS else 1.0
        luck = math.exp(NOISE * self.generator.standard_normal())
        took = (BATCH_S + ITEM_S * size) * one.speed * slower * luck
        one.free_at, one.batches = begun + took, one.batches + 1
        for arrived in arrivals:
            one.calls += 1
            yield ComparedCall(
                ROLLOUT, 1, FUNCTION, "", self.arm, self.rho, f"{one.name}-{one.calls}", "default", "",
                one.free_at, "", execute_ms=1e3 * took, total_ms=1e3 * (one.free_at - arrived),
                gpu_ns=int(1e9 * took / size), gpu_type="sim", container=one.name, nth_call=one.calls, is_cold=cold,
                start_ms=1e3 * COLD_S if cold else 0.0,
                batch=f"{one.name}/{one.batches}" if size > 1 else "", batch_size=size,
            )  # fmt: skip


def batch_of(arrivals: list[float], place: int, free_at: float) -> tuple[int, float]:
    """How many calls the next batch has, and when it begins: when it is full, or its first call has waited enough."""
    begun = max(arrivals[place] + WAIT_S, free_at)
    size = 1
    while size < LARGEST_BATCH and place + size < len(arrivals) and arrivals[place + size] <= begun:
        size += 1
    if size == LARGEST_BATCH:
        begun = max(arrivals[place + size - 1], free_at)
    return size, begun


def is_called_back(task: Task) -> bool:
    """Whether the judge rolls an equal version back."""
    setting, generator = task.setting, np.random.default_rng(task.seed)
    terms = RolloutTerms(tolerance=setting.tolerance, pairs=0, twin=setting.twin)
    rollout = running_rollout(terms)
    evidence = start(rollout)
    old = 1.0 - 2 * PART
    before = Side(Arm.CONTROL, old, 0.0, task.spread, generator, DEVICES if setting.learns else 1)
    seconds = task.calls / (2 * PART if setting.twin else 1.0) / CALLS_PER_S
    other = (Arm.TWIN, PART, 0.5) if setting.twin else (Arm.CONTROL, 1.0 - PART, PART)
    canary = Side(Arm.CANARY, PART, other[2], task.spread, generator).run(LEARNT_S, seconds)
    compared = canary + Side(*other, task.spread, generator).run(LEARNT_S, seconds)
    told = before.run(0.0, LEARNT_S) + sorted(compared, key=lambda call: call.at)
    for seq, call in enumerate(told, start=1):
        fold(evidence, seq, (call,))
        if evidence.crossed_at:
            return decide(evidence, rollout, evidence.last_at, DecisionFacts()).action is Action.ROLL_BACK
    return False


def figures_of(options: argparse.Namespace, pool: ProcessPoolExecutor) -> dict[str, float]:
    """The part of rollouts that are called back, by setting."""
    rows, figures = [], dict[str, float]()
    for place, setting in enumerate(SETTINGS):
        seeds = [(options.seed, place, number) for number in range(options.runs)]
        tasks = [Task(setting, options.calls, options.spread, seed) for seed in seeds]
        found = sum(pool.map(is_called_back, tasks, chunksize=2))
        figures[setting.name] = found / options.runs
        at_most = upper_bound(found, options.runs)
        if setting == SETTINGS[0]:
            figures["equal_at_most"] = at_most
        rows.append((setting.name, options.runs, found, f"{found / options.runs:.1%}", f"{at_most:.1%}"))
        print(f"{setting.name}: {found} of {options.runs}", flush=True)
    report.table(
        f"Equal versions of a batching function, devices {options.spread:.0%} apart",
        ["compared", "runs", "called back", "part", "at most (95 %)"], rows,
    )  # fmt: skip
    return figures


def main() -> None:
    parser = report.arguments("rollout_batches", (__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, help="rollouts of each kind (100)")
    parser.add_argument("--calls", type=int, default=6_000, help="compared calls of a rollout (6,000)")
    parser.add_argument("--spread", type=float, default=0.02, help="of the logarithms of devices' speeds (0.02)")
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = report.parsed(parser)
    options.runs = options.runs or (10 if options.quick else 100)
    with ProcessPoolExecutor(options.processes) as pool:
        figures = figures_of(options, pool)
    report.finish("rollout_batches", figures | {"runs": float(options.runs), "spread": options.spread})


if __name__ == "__main__":
    main()
