"""What keep-alive policies cost over recorded traffic: ours, by learnt idle times, against those of other systems.

`--set NAME` (several times; all by default) reads public traces in the folder `--data` (see `traffic/trace_sets.py`):
azure100, azure2000, azure500, servegen. `--trace FILE` reads a CSV with the columns `function,minute,count` or
`function,at_s,duration_s`.

Every policy says at the end of each minute how many containers should be there in the next one, and is charged for
whole minutes (`simulator/minutes/minute_replay.py`): nobody knows when in one a call comes. Ours is what
the controller has (`policy/prediction`), with one set of constants for all sets. A policy has a knob between idle time
and cold starts, so frontiers are compared:

    cold_gain_ttl    the part of cold starts that ours spares, at the same idle time as the best fixed TTL (on its
                     frontier, between two TTLs by interpolation); the least over ours' points
    idle_gain_ttl    the part of idle time that ours spares, at the same cold starts
    cold_gain_hist   as the first, against the hybrid histogram of one, two and four hours
    worst_loss       by how much ours has more cold starts than any policy here at that policy's idle time; below 0:
                     it has fewer than each of them
    oracle_cold_gain_ttl, oracle_idle_gain_ttl   the first two, of an oracle that knows from the beginning how often
                     each idle time of a function (of each level of its concurrency) comes, but not when
    oracle_gap       cold starts of ours over those of this oracle at the same idle time, the most
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import report
from benchmarks.traffic import trace_sets
from benchmarks.traffic.keep_alive_policies import (
    TTL_MINUTES,
    CostAwareTtl,
    FixedTtl,
    knative,
    with_known_law,
)
from pilotlight_autoscaler.policy.prediction.hybrid_histogram import HybridHistogram
from pilotlight_autoscaler.policy.prediction.keep_alive import KeepAlivePolicy
from pilotlight_autoscaler.policy.prediction.minute_methods import MinuteMethod, PlannedWarmth
from pilotlight_autoscaler.simulator.minutes.minute_model import (
    KeepAliveCost,
    MinuteSeries,
    cost_of,
    levels_of,
    ttl_cost_of,
)
from pilotlight_autoscaler.simulator.minutes.minute_replay import chosen_costs, method_costs, summed
from pilotlight_autoscaler.simulator.traffic.trace_files import TraceFault, read_trace

WORTHS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 300.0, 500.0, 1_000.0)
"""Of a cold start, in idle minutes: the points of our frontier. The controller takes a minute for each second of a
start."""
LOAD_S = 22.0
"""Of the table: half of the starts of base models on a public cluster of diffusion models take less."""
PRICE = 2.0
HOURS = (60, 120, 240)
PENALTIES = (5.0, 20.0, 100.0, 400.0)
QUICK_FUNCTIONS = 60
COLD_100 = {1: 10_639, 2: 8_300, 5: 2_361, 10: 1_123}
"""Cold starts of the 100 apps by fixed TTL: the authors' own simulation has 10,629 for the first."""
IDLE_2000 = {1: 0.46, 5: 0.90, 20: 1.10, 60: 1.28, 120: 1.39, 240: 1.53}
"""Idle time of the 2,000 apps by fixed TTL, over that of ten minutes."""
HYBRID_2000 = {60: 0.53, 120: 0.60, 240: 0.69}
OURS, HISTOGRAM, COST_AWARE = "ours", "hybrid histogram", "cost-aware TTL"
Point = tuple[str, KeepAliveCost]
TraceSet = tuple[list[MinuteSeries], list[Sequence[float]]]
"""Its series, and the containers that each function needs in each minute."""


def main() -> None:
    """Run, print, finish."""
    parser = report.arguments("autoscaler_traces", __doc__ or "")
    parser.add_argument("--set", action="append", choices=sorted(SETS), help="one of the sets; several times for more")
    parser.add_argument("--trace", type=Path, action="append", default=[], help="a CSV of recorded calls")
    folder = os.environ.get("PILOTLIGHT_TRACES")
    parser.add_argument(
        "--data",
        type=Path,
        default=folder and Path(folder),
        help="folder of the public traces; $PILOTLIGHT_TRACES by default",
    )
    options = parser.parse_args()
    figures: dict[str, float] = {}
    names = options.set or ([] if options.trace else sorted(SETS))
    if names and options.data is None:
        parser.error(
            "--data or $PILOTLIGHT_TRACES must name the folder of the public traces, which are not part of this"
        )
    for name in names:
        series, needed = SETS[name](options.data)
        figures |= _compared(name, *_shortened(series, needed, quick=options.quick))
        if not options.quick:
            figures |= _checked(name, series)
    for path in options.trace:
        try:
            trace = read_trace(path)
        except TraceFault as fault:
            parser.error(f"{path}: {fault}")
        figures |= _compared(path.stem, trace.series(), trace.needed())
    report.finish("autoscaler_traces", figures)


def _azure100(data: Path) -> TraceSet:
    needed = trace_sets.azure_100_apps(data)
    return trace_sets.by_level(needed), [*needed]


def _ones(read: Callable[[Path], Iterable[list[float]]]) -> Callable[[Path], TraceSet]:
    def make(data: Path) -> TraceSet:
        counts = list(read(data))
        return trace_sets.one_container(counts), [[float(count > 0) for count in each] for each in counts]

    return make


SETS: dict[str, Callable[[Path], TraceSet]] = {
    "azure100": _azure100,
    "azure2000": _ones(trace_sets.azure_2000_apps),
    "azure500": _ones(trace_sets.azure_500_functions),
    "servegen": _ones(trace_sets.servegen_tenants),
}


def _shortened(series: list[MinuteSeries], needed: list[Sequence[float]], *, quick: bool) -> TraceSet:
    if not quick:
        return series, needed
    step = max(1, len(series) // QUICK_FUNCTIONS)
    return series[::step], needed[:: max(1, len(needed) // QUICK_FUNCTIONS)]


def _compared(name: str, series: Sequence[MinuteSeries], needed: Sequence[Sequence[float]]) -> dict[str, float]:
    whole = [[math.ceil(count) for count in each] for each in needed]
    levels = [series for each in whole for series in levels_of(each)]
    ttls = [(f"fixed {ttl} min", ttl_cost_of(levels, ttl)) for ttl in TTL_MINUTES]
    with ProcessPoolExecutor() as pool:
        replays = list(pool.map(_replayed, whole, chunksize=8))
    costs = [(label, summed(replay[label] for replay in replays)) for label in replays[0]]
    ours, histograms, aware = (
        [point for point in costs if point[0].startswith(kind)] for kind in (OURS, HISTOGRAM, COST_AWARE)
    )
    others = [
        ("Knative KPA", knative(needed)),
        ("KEDA-like (cooldown 5 min)", dict(ttls)["fixed 5 min"]),
        *aware,
    ]
    best = [(f"oracle {worth:g}", with_known_law(levels, worth)) for worth in WORTHS]
    calls = sum(each.calls for each in series)
    hours = max(map(len, whole)) / 60
    report.table(
        f"{name}: {len(whole)} functions, {calls:,} calls; a start of {LOAD_S:g} s, {PRICE:g} $ for an hour of a GPU",
        ("policy", "cold", "cold %", "wait p95 s", "within 5 s %", "idle min", "$ / 1,000 calls", "starts / h"),
        [_row(label, cost, calls, hours) for label, cost in (*ttls, *histograms, *others, *ours, *best)],
    )
    inside, known = _within(ours, ttls), _within(best, ttls)
    figures = {
        "cold_gain_ttl": [_cold_gain(point, ttls) for point in inside],
        "idle_gain_ttl": [_idle_gain(point, ttls) for point in inside],
        "cold_gain_hist": [-_loss(point, ours) for _, point in histograms],
        "oracle_cold_gain_ttl": [_cold_gain(point, ttls) for point in known],
        "oracle_idle_gain_ttl": [_idle_gain(point, ttls) for point in known],
    }
    least = {figure: min(values) for figure, values in figures.items() if values}
    losses = [_loss(point, ours) for _, point in _inside([*ttls, *histograms, *others], ours)]
    gaps = [1 + _loss(point, ours) for _, point in _inside(best, ours)]
    most = {figure: max(values) for figure, values in (("worst_loss", losses), ("oracle_gap", gaps)) if values}
    return {f"{name}.{figure}": value for figure, value in (least | most).items()}


def _replayed(needed: Sequence[int]) -> dict[str, KeepAliveCost]:
    """What ours and those that learn cost over one function."""
    levels = max(needed, default=0)
    learning = {f"{HISTOGRAM} {m // 60} h": _planned(partial(HybridHistogram, m), levels) for m in HOURS}
    learning |= {f"{COST_AWARE} {p:g}": _planned(partial(CostAwareTtl, p), levels) for p in PENALTIES}
    ours = zip(WORTHS, chosen_costs([needed], WORTHS), strict=True)
    return method_costs([needed], learning) | {f"{OURS} {worth:g}": cost for worth, cost in ours}


def _planned(new: Callable[[], KeepAlivePolicy], levels: int) -> Callable[[], MinuteMethod]:
    return lambda: PlannedWarmth([new() for _ in range(levels)])


def _row(label: str, cost: KeepAliveCost, calls: int, hours: float) -> tuple[object, ...]:
    cold = cost.cold / calls
    paid_h = (cost.idle_minutes * 60 + max(cost.cold, cost.starts) * LOAD_S) / 3_600
    return (
        label,
        cost.cold,
        100 * cold,
        LOAD_S if cold > 0.05 else 0.0,
        100 * (1 - cold),
        cost.idle_minutes,
        paid_h * PRICE * 1_000 / calls,
        cost.starts / hours if cost.starts else "-",
    )


def _checked(name: str, series: list[MinuteSeries]) -> dict[str, float]:
    """How the model agrees with figures that others, or an independent model, have of the same traffic."""
    if name == "azure100":
        found = {ttl: cost_of(series, partial(FixedTtl, ttl)).cold for ttl in COLD_100}
        return {f"check_100apps_cold_{ttl}": float(cold) for ttl, cold in found.items()}
    if name != "azure2000":
        return {}
    ten = cost_of(series, partial(FixedTtl, 10)).idle_minutes
    known = {ttl: cost_of(series, partial(FixedTtl, ttl)).idle_minutes / ten for ttl in IDLE_2000}
    hybrid = {m: cost_of(series, partial(HybridHistogram, m)).idle_minutes / ten for m in HYBRID_2000}
    apart = [abs(known[ttl] / IDLE_2000[ttl] - 1) for ttl in IDLE_2000]
    apart += [abs(hybrid[minutes] / HYBRID_2000[minutes] - 1) for minutes in HYBRID_2000]
    return {"check_2000apps_apart": max(apart)}


def _curve(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Idle minutes and cold starts, by idle minutes."""
    ordered = sorted((cost.idle_minutes, float(cost.cold)) for _, cost in points)
    return [idle for idle, _ in ordered], [cold for _, cold in ordered]


def _cold_at(points: Sequence[Point], idle: float) -> float:
    return float(np.interp(idle, *_curve(points)))


def _idle_at(points: Sequence[Point], cold: float) -> float:
    idle, colds = _curve(points)
    return float(np.interp(cold, colds[::-1], idle[::-1]))


def _cold_gain(cost: KeepAliveCost, others: Sequence[Point]) -> float:
    return 1 - cost.cold / _cold_at(others, cost.idle_minutes)


def _idle_gain(cost: KeepAliveCost, others: Sequence[Point]) -> float:
    return 1 - cost.idle_minutes / _idle_at(others, cost.cold)


def _loss(other: KeepAliveCost, ours: Sequence[Point]) -> float:
    """By how much ours has more cold starts at the other's idle time."""
    return _cold_at(ours, other.idle_minutes) / other.cold - 1


def _within(ours: Sequence[Point], others: Sequence[Point]) -> list[KeepAliveCost]:
    """Ours' points that lie between the others' in idle time and in cold starts."""
    colds = [cost.cold for _, cost in others]
    return [cost for _, cost in _inside(ours, others) if min(colds) <= cost.cold < max(colds)]


def _inside(points: Sequence[Point], others: Sequence[Point]) -> list[Point]:
    idle, _ = _curve(others)
    return [point for point in points if idle[0] <= point[1].idle_minutes <= idle[-1]]


if __name__ == "__main__":
    main()
