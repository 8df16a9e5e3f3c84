"""What the judge of rollouts finds, and how soon: many made-up rollouts through the functions that judge real ones.

Each run folds its calls message by message (`fold`), writes the evidence and reads it back (`encode_evidence`,
`decode_evidence`), and asks what follows (`decide`). E is looked at after every call.

    same     both versions are one. How many runs are rolled back within 20,000 calls, in six settings: both sides with
             half of the calls; one with a tenth; a ramp of 1, 5, 10, 25, 50 %; 1 % of calls fail on both; times and
             costs that rise and fall by half; that with a ramp. `false_rollback_max` is the largest chance, by runs
             with tilted coins (`benchmarks/rollout_tilts.py`), `false_rollback_upper` what it is at most, with 95 %
             confidence. With `--full` plain runs are counted beside them: `false_rollback_counted`
    planted  the new version is worse. The median number of compared calls until it is rolled back, both sides
             together, over that of a table of simulations of the design: the largest over the rows of one kind
    pairs    +3 % cost by pairs of shadows whose costs stray by 5 %, with the tolerance of 1 %: the median number, and
             the part found within 600
    cost     seconds of processor for a call in `fold`, alone

Other traffic: `--seed`, `--errors`, `--latency-sd`, `--cost-sd`, `--tails`, `--noise`.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks import report
from benchmarks.rollout_tilts import TiltedCoins, likelihood_of
from benchmarks.rollout_traffic import SAME, Regression, Traffic, TrafficRun, running_rollout, shadow_pairs
from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm, RolloutTerms
from pilotlight_gateway.judging.decisions import Action, DecisionFacts, decide
from pilotlight_gateway.judging.evidence import Evidence, decode_evidence, encode_evidence, fold, start

CALLS = 20_000
MESSAGE = 100
"""Calls of one message."""
STORED_EVERY = 10
"""Messages."""
MOST_PAIRS = 600
NEVER = 10**9
"""Calls until a rollback that did not come."""

SETTINGS = {
    "half": Traffic(),
    "tenth": Traffic(rho=0.1),
    "ramp": Traffic(rho=0.0),
    "errors": Traffic(errors=0.01),
    "wave": Traffic(wave=0.5),
    "wave, ramp": Traffic(wave=0.5, rho=0.0),
}


class Planted(NamedTuple):
    """A regression, and the median number of calls until it was found in simulations of the design."""

    kind: str
    name: str
    traffic: Traffic
    regression: Regression
    median: float


HALF, TENTH = Traffic(), Traffic(rho=0.1)
ALL_SLOWER, TAIL_SLOWER = Regression(latency=1.2), Regression(tail_latency=1.2)
PLANTED = [
    Planted("p95_20", "p95 +20 %, all calls", HALF, ALL_SLOWER, 470),
    Planted("p95_20", "p95 +20 %, all calls, 10/90", TENTH, ALL_SLOWER, 1_340),
    Planted("tail_20", "p95 +20 %, slowest tenth", HALF, TAIL_SLOWER, 1_790),
    Planted("tail_20", "p95 +20 %, slowest tenth, 10/90", TENTH, TAIL_SLOWER, 4_480),
    Planted("errors_1pp", "errors 0.1 -> 1.1 %", HALF, Regression(errors=0.01), 2_730),
    Planted("errors_1pp", "errors 0.1 -> 1.1 %, 10/90", TENTH, Regression(errors=0.01), 5_630),
    Planted("all_fail", "every call fails", HALF, Regression(errors=1.0), 4),
    Planted("cost_10", "cost +10 %", HALF, Regression(cost=1.1), 2_440),
    Planted("cost_10", "cost +10 %, size known", Traffic(known=0.9), Regression(cost=1.1), 260),
    Planted("cost_10", "cost +10 %, size known, 10/90", Traffic(known=0.9, rho=0.1), Regression(cost=1.1), 860),
    Planted("cost_3", "cost +3 %, size known", Traffic(known=0.9), Regression(cost=1.03), 2_480),
]


class Task(NamedTuple):
    """One run, for another process."""

    traffic: Traffic
    regression: Regression
    calls: int
    seed: tuple[int, ...]


def rolled_back_after(task: Task) -> int:
    """The compared calls until the judge rolls back; `NEVER`: it does not."""
    run = TrafficRun(task.traffic, task.regression, task.calls, np.random.default_rng(task.seed))
    return judged(run.history(), list(run.compared()))


def weight_of_rollback(task: Task) -> float:
    """What a run of equal versions with tilted coins counts: 0 if the judge does not roll back."""
    generator = np.random.default_rng(task.seed)
    coins, run = TiltedCoins(task.traffic, generator), TrafficRun(task.traffic, SAME, task.calls, generator)
    history, compared = run.history(), list(run.compared(coins.chances))
    after = judged(history, compared)
    if after == NEVER:
        return 0.0
    return coins.weight(np.array([call.arm == Arm.CANARY for call in compared[:after]]))


def judged(history: list[ComparedCall], compared: list[ComparedCall]) -> int:
    """The compared calls until the judge rolls back; `NEVER`: it does not."""
    rollout = running_rollout(RolloutTerms(tolerance=0.0, pairs=0))
    evidence = start(rollout, history=history)
    for seq, first in enumerate(range(0, len(compared), MESSAGE), start=1):
        evidence = fold(evidence, seq, compared[first : first + MESSAGE])
        if seq % STORED_EVERY == 0:
            evidence = stored(evidence)
        if decide(evidence, rollout, evidence.last_at, DecisionFacts()).action is Action.ROLL_BACK:
            return evidence.crossed_at
    return NEVER


def stored(evidence: Evidence) -> Evidence:
    """As it is when it was written and read back."""
    read = decode_evidence(encode_evidence(evidence))
    assert read is not None
    return read


def rolled_back_after_pairs(noise: float, ratio: float, pairs: int, seed: tuple[int, ...]) -> int:
    """The pairs until the judge rolls back; `NEVER`: it does not."""
    rollout = running_rollout(RolloutTerms())
    evidence = start(rollout, shadowed=("answer",))
    for seq, call in enumerate(shadow_pairs(noise, ratio, pairs, np.random.default_rng(seed)), start=1):
        evidence = fold(evidence, seq, (call,))
        if evidence.crossed_at and decide(evidence, rollout, 0.0, DecisionFacts()).action is Action.ROLL_BACK:
            return seq // 2
    return NEVER


def judge_us(calls: int, seed: int) -> float:
    """Microseconds of processor for each call of two equal sides."""
    run = TrafficRun(HALF, SAME, calls, np.random.default_rng(seed))
    evidence = start(running_rollout(RolloutTerms()), history=run.history())
    compared = list(run.compared())
    began = time.process_time()
    for seq, first in enumerate(range(0, calls, MESSAGE), start=1):
        evidence = fold(evidence, seq, compared[first : first + MESSAGE])
    return (time.process_time() - began) / calls * 1e6


def upper_bound(found: int, runs: int, confidence: float = 0.95) -> float:
    """The largest rate under which so few of `runs` are not too unlikely (Clopper and Pearson, one-sided)."""
    low, high = found / runs, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        at_most = math.fsum(
            math.comb(runs, count) * middle**count * (1.0 - middle) ** (runs - count) for count in range(found + 1)
        )
        low, high = (middle, high) if at_most > 1.0 - confidence else (low, middle)
    return high


def same_versions(options: argparse.Namespace, pool: ProcessPoolExecutor) -> dict[str, float]:
    """Rollouts of a version against itself."""
    rows, worst, upper = [], 0.0, 0.0
    for place, (name, traffic) in enumerate(SETTINGS.items()):
        changed = changed_traffic(traffic, options)
        seeds = [(options.seed, 1, place, number) for number in range(options.runs)]
        tasks = [Task(changed, SAME, options.calls, seed) for seed in seeds]
        weights = list(pool.map(weight_of_rollback, tasks, chunksize=2))
        found = likelihood_of(weights)
        worst, upper = max(worst, found.chance), max(upper, found.at_most)
        row = (
            name,
            options.runs,
            sum(weight > 0.0 for weight in weights),
            f"{found.chance:.2%}",
            f"{found.at_most:.2%}",
        )
        rows.append(row)
        print(f"{name}: {found.chance:.2%}", flush=True)
    title = f"Equal versions, {options.calls:,} calls, tilted coins: the chance of a rollback"
    report.table(title, ["setting", "runs", "rolled back", "chance", "at most (95 %)"], rows)
    return {"false_rollback_max": worst, "false_rollback_upper": upper}


def counted_same_versions(options: argparse.Namespace, pool: ProcessPoolExecutor) -> dict[str, float]:
    """The same by plain runs."""
    rows, worst = [], 0
    for place, (name, traffic) in enumerate(SETTINGS.items()):
        changed = changed_traffic(traffic, options)
        seeds = [(options.seed, 5, place, number) for number in range(options.counted)]
        tasks = [Task(changed, SAME, options.calls, seed) for seed in seeds]
        found = sum(after < NEVER for after in pool.map(rolled_back_after, tasks, chunksize=4))
        worst = max(worst, found)
        at_most = upper_bound(found, options.counted)
        rows.append((name, options.counted, found, f"{found / options.counted:.2%}", f"{at_most:.2%}"))
        print(f"{name}: {found} of {options.counted}", flush=True)
    title = f"Equal versions, {options.calls:,} calls: rolled back"
    report.table(title, ["setting", "runs", "rolled back", "part", "at most (95 %)"], rows)
    return {
        "false_rollback_counted": worst / options.counted,
        "false_rollback_counted_upper": upper_bound(worst, options.counted),
    }


def planted_regressions(options: argparse.Namespace, pool: ProcessPoolExecutor) -> dict[str, float]:
    """Rollouts of versions that are worse."""
    rows, ratios = [], dict[str, float]()
    for place, planted in enumerate(PLANTED):
        changed = changed_traffic(planted.traffic, options)
        seeds = [(options.seed, 2, place, number) for number in range(options.planted_runs)]
        tasks = [Task(changed, planted.regression, options.calls, seed) for seed in seeds]
        found = sorted(pool.map(rolled_back_after, tasks, chunksize=2))
        median, high = found[len(found) // 2], found[int(0.9 * len(found))]
        ratio = median / planted.median
        ratios[planted.kind] = max(ratios.get(planted.kind, 0.0), ratio)
        rows.append((planted.name, _calls(median), _calls(high), f"{planted.median:,.0f}", ratio))
        print(f"{planted.name}: {_calls(median)}, design {planted.median:,.0f}", flush=True)
    columns = ["planted", "median calls", "p90", "median of the design", "ratio"]
    report.table("Worse versions: compared calls of both sides until rollback", columns, rows)
    return {f"{kind}_median_ratio": ratio for kind, ratio in ratios.items()}


def pairs_of_shadows(options: argparse.Namespace) -> dict[str, float]:
    """A new version that costs 3 % more, and one that does not, by pairs alone."""
    runs = options.planted_runs * 2
    found = sorted(
        rolled_back_after_pairs(options.noise, 1.03, MOST_PAIRS, (options.seed, 3, number)) for number in range(runs)
    )
    false = sum(
        rolled_back_after_pairs(options.noise, 1.0, MOST_PAIRS, (options.seed, 4, number)) < NEVER
        for number in range(runs)
    )
    within = sum(after < NEVER for after in found) / runs
    columns = ["noise", "runs", "median pairs", "p90", f"within {MOST_PAIRS}", "equal, rolled back"]
    row = (
        f"{options.noise:.0%}",
        runs,
        _calls(found[runs // 2]),
        _calls(found[int(0.9 * runs)]),
        f"{within:.1%}",
        false,
    )
    report.table("+3 % cost by pairs", columns, [row])
    return {
        "cost_3_pairs_median": float(found[runs // 2]),
        "cost_3_pairs_within": within,
        "pairs_false_rollback": false / runs,
    }


def changed_traffic(traffic: Traffic, options: argparse.Namespace) -> Traffic:
    """As the options say it."""
    changes = {
        name: value
        for name in ("latency_sd", "cost_sd", "tails")
        if (value := getattr(options, name)) is not None
    }  # fmt: skip
    if options.errors is not None and traffic.errors < options.errors:
        changes["errors"] = options.errors
    return replace(traffic, **changes)


def _calls(count: int) -> str:
    return "never" if count >= NEVER else f"{count:,}"


def main() -> None:
    parser = report.arguments("rollouts", (__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, help="rollouts of equal versions in each setting (default 100)")
    parser.add_argument("--counted", type=int, default=0, help="plain rollouts of equal versions in each setting (0)")
    parser.add_argument("--planted-runs", type=int, help="rollouts of each worse version (default 100)")
    parser.add_argument("--full", action="store_true", help="400, 2,000 and 500 of these: an hour")
    parser.add_argument("--only", choices=["same", "counted", "planted", "pairs"], help="one of the parts")
    parser.add_argument("--calls", type=int, default=CALLS, help="compared calls of a rollout at most")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--errors", type=float, help="the rate of failures on both sides, at least")
    parser.add_argument("--latency-sd", type=float, help="of the logarithm of times (0.5)")
    parser.add_argument("--cost-sd", type=float, help="of the logarithm of costs (0.6)")
    parser.add_argument("--tails", type=float, help="Student's t with so many degrees of freedom, in place of normal")
    parser.add_argument("--noise", type=float, default=0.05, help="of a pair's ratio of costs")
    options = report.parsed(parser)
    same, counted, planted = (16, 0, 25) if options.quick else (400, 2_000, 500) if options.full else (100, 0, 100)
    options.runs = options.runs or same
    options.counted = options.counted or counted
    options.planted_runs = options.planted_runs or planted
    figures: dict[str, float] = {}
    with ProcessPoolExecutor(options.processes) as pool:
        if options.only in (None, "planted"):
            figures |= planted_regressions(options, pool)
        if options.only in (None, "pairs"):
            figures |= pairs_of_shadows(options)
        if options.only in (None, "same"):
            figures |= same_versions(options, pool)
        if options.counted and options.only in (None, "counted"):
            figures |= counted_same_versions(options, pool)
    figures["judge_us"] = judge_us(min(options.calls, CALLS), options.seed)
    report.finish("rollouts", figures)


if __name__ == "__main__":
    main()
