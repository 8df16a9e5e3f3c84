"""How much of a fleet each placement policy can give away before it is full, on the published openb traces.

    python -m benchmarks.placement_openb --data DIR [--trace NAME ...] [--seeds 42,43] [--policy ours,fgd] [--quick]

DIR (or the environment variable PILOTLIGHT_OPENB) holds the CSV files of Alibaba's cluster-trace-gpu-v2023, which are
not part of this project. The protocol is that of FGD (Weng et al., USENIX ATC 2023), with its seeds, its order of tasks
and its order of nodes, so that a run can be held to the published run of the same trace, policy and seed.

`ours` is the product: its fleet, its asks and its `place()` (`benchmarks.openb.ours`).

Figures: TRACE.POLICY is the mean over the seeds of the percent of GPUs allocated when as many are asked for as there
are; TRACE.ours_minus_fgd and ours_minus_fgd are paired by seed. TRACE.lp_bound is what no policy can exceed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from benchmarks.openb import plot
from benchmarks.openb.cluster import Floats
from benchmarks.openb.lp_bound import lp_bound
from benchmarks.openb.run import POLICIES, Run, run
from benchmarks.openb.trace import BadTrace, Trace, altered, names, read
from benchmarks.openb.workload import SEEDS
from benchmarks.report import arguments, finish, table

FOLDER = "PILOTLIGHT_OPENB"
PROCESSES = 2
DELTA = "ours_minus_fgd"
BOUND = "lp_bound"


def main() -> None:
    """Run what is asked for; say what is wrong with the files instead of failing on them."""
    options = parse(sys.argv[1:])
    try:
        bound = bounds(options.data, options.trace or names(options.data), options.seeds)
        runs = measure(options.data, options.trace or names(options.data), options.policy, options.seeds)
    except BadTrace as error:
        sys.exit(f"placement_openb: {error}")
    found = figures(runs) | bound
    show(runs, found)
    picture(runs, options.plot)
    finish("placement_openb", found)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The options; `--quick` is one seed of what is asked for."""
    parser = arguments("placement_openb", "GPUs allocated against GPUs asked for, by placement policy")
    folder = os.environ.get(FOLDER)
    parser.add_argument("--data", type=Path, default=folder and Path(folder), help=f"the CSV files; else ${FOLDER}")
    parser.add_argument("--trace", type=listed, action="extend", help="names as in openb_pod_list_NAME.csv; else all")
    parser.add_argument("--seeds", type=numbers, default=SEEDS, help="else 42,43,...,51, the published ones")
    parser.add_argument("--policy", type=listed, default=POLICIES, help=f"of {','.join(POLICIES)}; else all")
    parser.add_argument("--plot", type=Path, default=Path("placement_openb.png"), help="where the picture goes")
    options = parser.parse_args(words)
    if options.data is None or not options.data.is_dir():
        parser.error(f"--data or ${FOLDER} must name the folder of the openb CSV files, not {options.data}")
    if unknown := set(options.policy) - set(POLICIES):
        parser.error(f"no such policy: {', '.join(sorted(unknown))}")
    if not (options.trace or names(options.data)):
        parser.error(f"no openb_pod_list_*.csv in {options.data}")
    if options.quick:
        options.seeds = options.seeds[:1]
    return options


def listed(text: str) -> tuple[str, ...]:
    """Words between commas; at least one."""
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    if not words:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing")
    return words


def numbers(text: str) -> tuple[int, ...]:
    """Whole numbers between commas."""
    try:
        return tuple(int(word) for word in listed(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers like 42,43") from None


def measure(folder: Path, traces: Iterable[str], policies: Sequence[str], seeds: Sequence[int]) -> list[Run]:
    """All runs, on two processes, in the order in which they are asked for."""
    jobs = []
    for name in traces:
        trace = once(folder, name)
        for stem in altered(folder, name):
            print(f"{stem}.csv is not the published file of that name", file=sys.stderr)
        jobs += [(folder, trace.name, policy, seed) for policy in policies for seed in seeds]
    with ProcessPoolExecutor(PROCESSES) as pool:
        return list(pool.map(one, jobs))


def bounds(folder: Path, traces: Iterable[str], seeds: Sequence[int]) -> dict[str, float]:
    """The mean over the seeds of what no policy can exceed on each trace, where a solver is installed."""
    if find_spec("ortools") is None:
        print("no bounds: ortools is not installed (pip install 'pilotlight[planner]')")
        return {}
    found = {}
    for name in traces:
        trace = once(folder, name)
        found[f"{trace.name}.{BOUND}"] = statistics.fmean(lp_bound(trace, seed) for seed in seeds)
    return found


@cache
def once(folder: Path, name: str) -> Trace:
    """A trace, read once in each process."""
    return read(folder, name)


def one(job: tuple[Path, str, str, int]) -> Run:
    """One run, wherever it is done."""
    folder, name, policy, seed = job
    return run(once(folder, name), policy, seed)


def figures(runs: Sequence[Run]) -> dict[str, float]:
    """The means, and the differences of the runs of equal seeds."""
    by_key = {(each.trace, each.policy, each.seed): each.allocated for each in runs}
    found: dict[str, float] = {}
    deltas: list[float] = []
    for trace in dict.fromkeys(each.trace for each in runs):
        for policy in dict.fromkeys(each.policy for each in runs):
            found[f"{trace}.{policy}"] = statistics.fmean(
                value for (at, of, _), value in by_key.items() if (at, of) == (trace, policy)
            )
        paired = [
            value - by_key[trace, "fgd", seed]
            for (at, of, seed), value in by_key.items()
            if (at, of) == (trace, "ours") and (trace, "fgd", seed) in by_key
        ]
        if paired:
            found[f"{trace}.{DELTA}"] = statistics.fmean(paired)
            deltas += paired
    return found | ({DELTA: statistics.fmean(deltas)} if deltas else {})


def show(runs: Sequence[Run], found: dict[str, float]) -> None:
    """What is allocated at full demand, with the spread over the seeds, and how many tasks were turned away."""
    policies = list(dict.fromkeys(each.policy for each in runs))
    rows: list[list[object]] = []
    turned_away: list[list[object]] = []
    for trace in dict.fromkeys(each.trace for each in runs):
        row: list[object] = [trace]
        refused: list[object] = [trace]
        for policy in policies:
            mine = [each for each in runs if (each.trace, each.policy) == (trace, policy)]
            spread = statistics.stdev(each.allocated for each in mine) if len(mine) > 1 else 0.0
            row.append(f"{found[f'{trace}.{policy}']:.2f} ±{spread:.2f}")
            refused.append(f"{statistics.fmean(each.refused for each in mine):.0f}")
        delta, bound = found.get(f"{trace}.{DELTA}"), found.get(f"{trace}.{BOUND}")
        rows.append([*row, "" if delta is None else f"{delta:+.2f}", "" if bound is None else f"{bound:.2f}"])
        turned_away.append(refused)
    table("GPUs allocated at 100 % demand, %", ["trace", *policies, "ours - fgd", "bound"], rows)
    table("Tasks turned away until 100 % demand", ["trace", *policies], turned_away)


def picture(runs: Sequence[Run], path: Path) -> None:
    """Draw the curves, where that can be done."""
    if find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed (pip install 'pilotlight[dev]')")
        return
    curves: dict[str, dict[str, list[Floats]]] = {}
    for each in runs:
        curves.setdefault(each.trace, {}).setdefault(each.policy, []).append(each.curve)
    plot.draw(curves, path)
    print(f"allocation against demand: {path}")


if __name__ == "__main__":
    main()
