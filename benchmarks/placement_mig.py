"""What part of the containers that come and go finds a place on 100 MIG devices, by policy.

100 A100s with the profiles 1g, 1g.2x (double memory), 2g, 3g, 4g and 7g. Three mixes of arrivals, loads of 0.8 to 1.2
(memory slices asked for at a time, by those that there are), the same arrivals for each policy (paired by seed), those
of the first 2,000 not counted. Accepted arrivals in percent; nothing that fits is refused by any policy.

Of a few mixes in round numbers these are the ones under which first fit, best fit and FGD come nearest to figures that
were measured of them before (rms 0.8 points); docs/design/placement-mig.md has the gain under others.

Figures: `MIX.LOAD.POLICY`, and over all cells `ours_minus_fgd_masks`, `ours_minus_fgd_whole`, `worst_against_best`
(the lowest difference of ours to the best of the others in a cell), `memory.POLICY` (accepted memory slices).
"""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

from benchmarks.mig_churn import POLICIES, Cell, run
from benchmarks.report import arguments, finish, table
from pilotlight_placement.hardware.catalogue import family

DEVICES = 100
PROFILES = ("1g", "1g.2x", "2g", "3g", "4g", "7g")
MIXES = {
    "uniform": (1, 1, 1, 1, 1, 1),
    "small": (30, 20, 30, 10, 5, 5),
    "large": (10, 10, 10, 20, 20, 30),
}
"""Parts of the arrivals, in the order of PROFILES."""
LOADS = (0.8, 0.9, 1.0, 1.1, 1.2)
SEEDS = tuple(range(1, 11))
WARM_UP = 2_000
ARRIVALS = 20_000
OURS = "ours"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One cell and seed, for some policies."""

    mix: str
    load: float
    seed: int
    policies: tuple[str, ...]
    arrivals: int


Outcome = dict[str, tuple[float, float]]
"""By policy: percent of arrivals, and of memory slices, that were accepted."""


def cell_of(mix: str, load: float) -> Cell:
    """The setting of a mix and a load."""
    seven = family("seven")
    parts = dict(zip(PROFILES, MIXES[mix], strict=True))
    return Cell(
        family=seven, mix=tuple(parts.get(p.key, 0) for p in seven.profiles), load=load, devices=DEVICES
    )  # fmt: skip


def play(job: Job) -> Outcome:
    """All policies of a job on one trace."""
    cell = cell_of(job.mix, job.load)
    # The seed alone makes the trace of a cell: any other set of policies or cells gives the same figures.
    trace = cell.trace(WARM_UP + job.arrivals, job.seed)
    tallies = {name: run(cell, trace, POLICIES[name](), WARM_UP) for name in job.policies}
    return {name: (tally.percent, tally.percent_of_memory(cell.family)) for name, tally in tallies.items()}


def figures_of(outcomes: Iterable[tuple[Job, Outcome]], policies: Sequence[str]) -> dict[str, float]:
    """Means over seeds by cell, and over cells."""
    cells: dict[tuple[str, float], list[Outcome]] = {}
    for job, outcome in outcomes:
        cells.setdefault((job.mix, job.load), []).append(outcome)
    means = {
        (mix, load, policy): sum(outcome[policy][0] for outcome in found) / len(found)
        for (mix, load), found in cells.items()
        for policy in policies
    }
    figures = {f"{mix}.{load}.{policy}": mean for (mix, load, policy), mean in means.items()}
    others = [policy for policy in policies if policy != OURS]
    if OURS in policies:
        for other in others:
            if other.startswith("fgd"):
                gaps = [means[*cell, OURS] - means[*cell, other] for cell in cells]
                figures[f"ours_minus_{other}"] = sum(gaps) / len(gaps)
        if others:
            figures["worst_against_best"] = min(
                means[*cell, OURS] - max(means[*cell, other] for other in others) for cell in cells
            )
    for policy in policies:
        memory = [outcome[policy][1] for found in cells.values() for outcome in found]
        figures[f"memory.{policy}"] = sum(memory) / len(memory)
    return figures


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a list of whole numbers like 1,2,3") from None


def _policies(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := [name for name in names if name not in POLICIES]:
        raise ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(POLICIES)}")
    return names


def main() -> None:
    """Run all cells, print the table and the figures."""
    parser = arguments("placement_mig", "accepted containers on 100 MIG devices under churn, by policy")
    parser.add_argument("--seeds", type=_seeds, default=SEEDS, help="comma-separated; default 1 to 10")
    parser.add_argument("--policies", type=_policies, default=tuple(POLICIES), help="comma-separated; default all")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes; default one a core")
    options = parser.parse_args()
    seeds = options.seeds[:1] if options.quick else options.seeds
    arrivals = ARRIVALS // 10 if options.quick else ARRIVALS
    jobs = [
        Job(mix=mix, load=load, seed=seed, policies=options.policies, arrivals=arrivals)
        for mix, load, seed in product(MIXES, LOADS, seeds)
    ]
    with ProcessPoolExecutor(options.workers) as pool:
        figures = figures_of(zip(jobs, pool.map(play, jobs), strict=True), options.policies)
    rows = [
        [mix, load, *(f"{figures[f'{mix}.{load}.{policy}']:.2f}" for policy in options.policies)]
        for mix, load in product(MIXES, LOADS)
    ]
    rows.append(["memory", "all", *(f"{figures[f'memory.{policy}']:.2f}" for policy in options.policies)])
    table(f"accepted, % (means of {len(seeds)} seeds)", ["mix", "load", *options.policies], rows)
    for name in ("ours_minus_fgd_masks", "ours_minus_fgd_whole", "worst_against_best"):
        if name in figures:
            print(f"{name}: {figures[name]:+.3f}")
    finish("placement_mig", figures)


if __name__ == "__main__":
    main()
