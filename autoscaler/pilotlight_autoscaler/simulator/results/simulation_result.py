"""What a simulation found, so far or in all: figures for people, and for programs."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pilotlight_autoscaler.simulator.runs.function_run import FunctionRun
from pilotlight_autoscaler.simulator.runs.function_sums import LEVELS_S, FunctionSums
from pilotlight_autoscaler.simulator.traffic.function_traffic import MINUTE_S

PERCENTILES = (50, 95, 99)


class ContainerTimeline:
    """Containers of all functions at the end of each minute, and what was started and ended in it."""

    def __init__(self, minutes: int) -> None:
        self.wanted = array("l", [0]) * minutes
        self.ready = array("l", [0]) * minutes
        self.starting = array("l", [0]) * minutes
        self.parked = array("l", [0]) * minutes
        """Containers that left their slice, and keep their memory."""
        self.actions = array("l", [0]) * minutes

    def observe(self, minute: int, *, wanted: int, ready: int, starting: int) -> None:
        """Count a function's containers at the end of a minute."""
        if minute < len(self.wanted):
            self.wanted[minute] += wanted
            self.ready[minute] += ready
            self.starting[minute] += starting

    def count_parked(self, since: float, ended_at: float) -> None:
        """A container was parked, which counts at the end of each minute in which it was."""
        for minute in range(int(since // MINUTE_S), min(len(self.parked), int(ended_at // MINUTE_S))):
            self.parked[minute] += 1

    def count(self, at: float, actions: int) -> None:
        """Containers were started, or ended."""
        self.actions[min(len(self.actions) - 1, int(at // MINUTE_S))] += actions


@dataclass(kw_only=True)
class SimulationResult:
    runs: list[FunctionRun]
    minutes: int
    at: float = 0.0
    """Seconds that were simulated."""
    timeline: ContainerTimeline = field(init=False)

    def __post_init__(self) -> None:
        self.timeline = ContainerTimeline(self.minutes)

    def totals(self) -> FunctionSums:
        """The sums of all functions, with the containers that are still there."""
        return _sum_of(self.runs, self.at)

    def by_class(self) -> dict[str, FunctionSums]:
        """The sums of each class of calls, if any are named."""
        names = sorted({run.function.priority for run in self.runs if run.function.priority})
        return {name: _sum_of((r for r in self.runs if r.function.priority == name), self.at) for name in names}

    def figures(self) -> dict[str, float]:
        """The figures by name, as `as_json` has them."""
        return figures_of(self.totals(), self.at)

    def as_json(self) -> dict[str, Any]:
        """Everything, for programs."""
        line = self.timeline
        last = min(self.minutes, int(self.at // MINUTE_S))
        return {
            "simulated_s": self.at,
            "functions": len(self.runs),
            "figures": self.figures(),
            "classes": {name: figures_of(sums, self.at) for name, sums in self.by_class().items()},
            "timeline": {
                name: list(getattr(line, name)[:last]) for name in ("wanted", "ready", "starting", "parked", "actions")
            },
        }


def figures_of(sums: FunctionSums, seconds: float) -> dict[str, float]:
    """The figures of sums over so many seconds. Ratios are of the calls that came; nothing of nothing is 0."""
    calls, waits = max(1, sums.calls), sums.waits
    figures: dict[str, float] = {"calls": sums.calls, "cold_start_rate": sums.cold / calls}
    figures |= {f"wait_p{percent}_s": waits.percentile(percent) for percent in PERCENTILES}
    figures |= {f"met_{level:g}s": met / calls for level, met in zip(LEVELS_S, sums.met, strict=True)}
    return figures | {
        "refused": sums.refused,
        "late": sums.late,
        "busy_gpu_s": sums.busy_gpu_s,
        "loading_gpu_s": sums.loading_gpu_s,
        "idle_gpu_s": sums.idle_gpu_s,
        "dollars": sums.dollars,
        "dollars_per_1000_calls": 1000.0 * sums.dollars / calls,
        "starts": sums.starts,
        "actions_per_hour": 3600.0 * (sums.starts + sums.drains) / max(seconds, 1.0),
        "unused_loads": sums.unused,
        "unparks": sums.unparks,
        "parked_gib_s": sums.parked_gib_s,
    }


def _sum_of(runs: Iterable[FunctionRun], at: float) -> FunctionSums:
    found = FunctionSums()
    for run in runs:
        found.add(run.sums)
        for container in (*run.ready, *run.starting):
            found.add_container(container, max(at, container.began_at))
    return found


ROWS: Mapping[str, tuple[str, str]] = {
    "calls": ("calls", ",.0f"),
    "cold_start_rate": ("cold starts, of all calls", ".3%"),
    "wait_p50_s": ("queue wait p50, s", ".3f"),
    "wait_p95_s": ("queue wait p95, s", ".3f"),
    "wait_p99_s": ("queue wait p99, s", ".3f"),
    "met_0.5s": ("had their turn within 0.5 s", ".3%"),
    "met_5s": ("had their turn within 5 s", ".3%"),
    "met_30s": ("had their turn within 30 s", ".3%"),
    "refused": ("refused at a full queue", ",.0f"),
    "late": ("late: left the queue at their timeout", ",.0f"),
    "busy_gpu_s": ("GPU-seconds busy", ",.0f"),
    "loading_gpu_s": ("GPU-seconds loading", ",.0f"),
    "idle_gpu_s": ("GPU-seconds idle", ",.0f"),
    "dollars": ("cost, $", ",.2f"),
    "dollars_per_1000_calls": ("cost per 1,000 calls, $", ",.4f"),
    "starts": ("containers started", ",.0f"),
    "actions_per_hour": ("starts and ends per hour", ",.1f"),
    "unused_loads": ("loads never used", ",.0f"),
    "unparks": ("parked containers that served again", ",.0f"),
    "parked_gib_s": ("GiB-seconds of host memory, parked", ",.0f"),
}
"""Figure -> its words, and how it is written."""
OF_PARKED = frozenset({"unparks", "parked_gib_s"})
"""Figures that are shown where something was parked."""


def as_table(columns: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The figures of one or more simulations beside each other, by name."""
    rows = [("", *columns)]
    shown = [name for name in ROWS if name not in OF_PARKED or any(each[name] for each in columns.values())]
    rows += [(ROWS[name][0], *(format(each[name], ROWS[name][1]) for each in columns.values())) for name in shown]
    widths = [max(len(row[place]) for row in rows) for place in range(len(columns) + 1)]
    first, *others = widths
    return [
        f"{row[0]:<{first}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], others, strict=True))
        for row in rows
    ]
