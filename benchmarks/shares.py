"""How the fleet is shared when tenants want twice what there is, on a virtual clock: the controller's own decisions.

    settled    ten tenants of eight functions each, weights 1, 2 and 4, want 416 of 200 GPUs; calls take 5 to 30 s and
               the timeout is 30 s. The first four tenants come 40 s before the others, and hold all GPUs by then
    newcomer   an eleventh one comes late and has a guarantee of a tenth
    floors     a twelfth keeps one idle container of each of its functions (`min_containers=1`), within its guarantee

All is held as long as anybody wants it, so who comes late gets what others give back: their containers end their calls
first. Each figure is the worst of the runs, which differ in their calls (`--seeds`).
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

from benchmarks import report
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.units import GpuAsk
from tests.autoscaler.busy_fleet import STEP_S, BusyFleet, gpu_nodes, lasting

WEIGHTS = {f"t{n}": weight for n, weight in enumerate((1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 4.0, 4.0))}
FIRST = ("t0", "t4", "t8", "t9")
"""The tenants that are there before the others."""
FUNCTIONS = 8
NODES, GPUS = 26, 8
TIMEOUT_S, LOAD_S = 30.0, 2.0
CALLS_S = (5.0, TIMEOUT_S)
CALLS = {1.0: 3, 2.0: 5, 4.0: 10}
"""Wanted of each function at any time, by its tenant's weight: 416 in all, for 200 GPUs beside those of the floors.
Each tenant wants about twice what its weight makes."""
FULL = 16
"""The same of those that are there first, alone."""
GUARANTEE = 0.1
MEASURED_S = 60.0
GPU = (GpuAsk("H100"),)


@dataclass(frozen=True, kw_only=True)
class ShareFigures:
    """What one run found."""

    error: float
    """By how much a tenant's part of what all have differs from its weight's part, at most: a part of the latter."""
    settled_s: float
    newcomer_s: float
    floors_touched: int
    moves: float
    """Starts in an hour while nothing changes, over all tenants."""
    pass_ms: float


def main() -> None:
    """Run, print, finish."""
    parser = report.arguments("shares", (__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, help="how many runs (default: 3, quick: 1)")
    options = report.parsed(parser)
    runs = [measured(seed) for seed in range(options.seeds or (1 if options.quick else 3))]
    columns = ("run", "share_error", "settled_s", "newcomer_s", "floors_touched", "starts_per_hour", "pass_ms")
    rows = [
        (n, run.error, run.settled_s, run.newcomer_s, run.floors_touched, run.moves, run.pass_ms)
        for n, run in enumerate(runs)
    ]
    report.table("runs", columns, rows)
    figures = {
        "share_error": max(run.error for run in runs),
        "settled_s": max(run.settled_s for run in runs),
        "newcomer_s": max(run.newcomer_s for run in runs),
        "newcomer_bound_s": TIMEOUT_S + LOAD_S,
        "floors_touched": max(run.floors_touched for run in runs),
        "starts_per_hour": max(run.moves for run in runs),
        "pass_ms": max(run.pass_ms for run in runs),
    }
    report.finish("shares", figures)


def measured(seed: int) -> ShareFigures:
    """One run of all three parts."""
    terms = {"keeper": Limits(guarantee=0.05), "late": Limits(guarantee=GUARANTEE)}
    fleet = BusyFleet(slices=gpu_nodes(NODES, GPUS), terms=terms, weights=WEIGHTS)
    for n in range(FUNCTIONS):
        fleet.add(lasting("keeper", f"f{n}", min_containers=1, gpu=GPU))
    _let_pass(fleet, 5.0)
    for tenant in FIRST:
        _add(fleet, tenant, calls=FULL, seed=seed)
    _let_pass(fleet, 40.0)
    for tenant, weight in WEIGHTS.items():
        _add(fleet, tenant, calls=CALLS[weight], seed=seed)
    settled_s = _until_settled(fleet)

    starts, began, steps = fleet.starts.total(), time.process_time(), 0
    sums = Counter[str]()
    for _ in fleet.run(MEASURED_S):
        sums.update(fleet.held())
        steps += 1
    pass_ms = (time.process_time() - began) / steps * 1000.0
    moves = (fleet.starts.total() - starts) / MEASURED_S * 3600.0

    _add(fleet, "late", calls=CALLS[2.0], seed=seed)
    came = fleet.at
    wanted = int(GUARANTEE * NODES * GPUS)
    while fleet.ready("late") < wanted and fleet.at - came < 10 * TIMEOUT_S:
        fleet.step()
    newcomer_s = fleet.at - came
    _let_pass(fleet, MEASURED_S)
    return ShareFigures(
        error=share_error(sums), settled_s=settled_s, newcomer_s=newcomer_s, floors_touched=fleet.drains["keeper"],
        moves=moves, pass_ms=pass_ms,
    )  # fmt: skip


def share_error(sums: Counter[str]) -> float:
    """The largest difference of a tenant's part from that of its weight, as a part of the latter."""
    held = sum(sums[tenant] for tenant in WEIGHTS)
    weights = sum(WEIGHTS.values())
    return max(abs(sums[tenant] / held / (weight / weights) - 1.0) for tenant, weight in WEIGHTS.items())


def _add(fleet: BusyFleet, tenant: str, *, calls: int, seed: int) -> None:
    """Give a tenant its functions, or another number of calls to those that it has."""
    for n in range(FUNCTIONS):
        made = lasting(
            tenant, f"f{n}", calls=calls, call_s=CALLS_S, seed=seed, load_s=LOAD_S, timeout=TIMEOUT_S, gpu=GPU
        )
        if (known := fleet.loads.get(made.record.id)) is None:
            fleet.add(made)
        else:
            known.calls = calls


def _until_settled(fleet: BusyFleet) -> float:
    """How long it takes until each tenant has its part, to a container."""
    came, weights = fleet.at, sum(WEIGHTS.values())
    while fleet.at - came < 20 * TIMEOUT_S:
        fleet.step()
        held = fleet.held()
        total = sum(held[tenant] for tenant in WEIGHTS)
        apart = (abs(held[tenant] - total * weight / weights) for tenant, weight in WEIGHTS.items())
        leaving = any(each.draining for each in fleet.there.values())
        if max(apart) < 1.0 and not leaving:
            return fleet.at - came
    return fleet.at - came


def _let_pass(fleet: BusyFleet, seconds: float) -> None:
    for _ in range(round(seconds / STEP_S)):
        fleet.step()


if __name__ == "__main__":
    main()
