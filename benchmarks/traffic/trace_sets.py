"""Recorded traffic as the benchmark reads it: public traces in a folder that is not part of this project.

`--data FOLDER` names it; it has the files of `azure_functions_2019` (Shahrad et al., ATC 2020; pieces of it as the
FeMux and In-Vitro artefacts carry them) and of `servegen_2025` (ServeGen, arXiv 2505.09999).
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from pilotlight_autoscaler.simulator.minutes.minute_model import MinuteSeries, levels_of, series_of

DAY = 1_440
SERVEGEN_SCALE = 0.001
"""Of ServeGen's rates: its clients send up to hundreds of calls a second, which keep any container warm."""
SERVEGEN_DAYS = 14
SEED = 7
AZURE, SERVEGEN = "azure_functions_2019", "servegen_2025"


def azure_100_apps(folder: Path) -> list[list[float]]:
    """Containers that each of 100 apps needs in each minute of a day."""
    rows = _rows(folder / AZURE / "containers_per_min_100apps_24h.csv.gz")
    first = rows[0].index("1")
    return [[float(cell or 0) for cell in row[first:]] for row in rows[1:]]


def azure_2000_apps(folder: Path) -> Iterator[list[float]]:
    """Calls of 2,000 apps in each minute of a day: their true totals, and shapes of functions with such totals."""
    draw = np.random.default_rng(SEED)
    vectors = _rows(folder / AZURE / "day_vectors_8026fn_24h.csv.gz")[1:]
    totals = np.array([int(row[1]) for row in vectors])
    apps = _rows(folder / AZURE / "app_day1_totals_17577apps.csv.gz")
    column = apps[0].index("NumInvocations")
    known = np.array([int(float(row[column])) for row in apps[1:]])
    picked = draw.choice(known[known <= totals.max()], 2_000, replace=False)
    for place in np.clip(np.searchsorted(totals, picked), 0, len(totals) - 1):
        shape = [float(cell) for cell in vectors[place][2:]]
        by = int(draw.integers(0, DAY))
        yield shape[-by:] + shape[:-by] if by else shape


def azure_500_functions(folder: Path) -> list[list[float]]:
    """Calls of 500 functions in each of 480 minutes."""
    rows = _rows(folder / AZURE / "invocations_500fn_8h.csv.gz")
    return [[float(cell or 0) for cell in row[4:]] for row in rows[1:]]


def servegen_tenants(folder: Path) -> Iterator[list[float]]:
    """Calls of each client of a language model in each minute of two weeks, at a thousandth of its rate.

    Each window of ten minutes has its own law of the time between two calls, which is drawn from.
    """
    windows: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    with gzip.open(folder / SERVEGEN / "arrivals_10min.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if row["model"] in ("m-large", "m-mid", "m-small"):
                windows[row["model"], row["client"]].append(row)
    for number, found in enumerate(windows.values()):
        draw = np.random.default_rng((SEED, number))
        counts = [0.0] * (SERVEGEN_DAYS * DAY)
        left = draw.exponential()
        for row in found:
            at, end = float(row["t_s"]), float(row["t_s"]) + 600.0
            gap = _gap_of(row, draw)
            while at + left * gap.mean < end:
                at += left * gap.mean
                if (minute := int(at // 60)) < len(counts):
                    counts[minute] += 1
                left = gap.draw()
            left -= (end - at) / gap.mean
        yield counts


class _Gap:
    """The time between two calls: its mean in seconds at the reduced rate, and draws in parts of it."""

    def __init__(self, mean: float, draw: Callable[[], float], unit: float) -> None:
        self.mean = mean
        self._draw = draw
        self._unit = unit

    def draw(self) -> float:
        return self._draw() / self._unit


def _gap_of(row: dict[str, str], draw: np.random.Generator) -> _Gap:
    mean = 1.0 / (float(row["rate_rps"]) * SERVEGEN_SCALE)
    shape = max(0.05, float(row["param1"]))
    if row["dist"] == "Weibull":
        from math import gamma

        return _Gap(mean, lambda: float(draw.weibull(shape)), gamma(1.0 + 1.0 / shape))
    return _Gap(mean, lambda: float(draw.gamma(shape)), shape)


def _rows(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt") as file:
        return list(csv.reader(file))


def one_container(functions: Iterator[list[float]] | list[list[float]]) -> list[MinuteSeries]:
    """Series of functions that one container serves, however many calls a minute has."""
    return [found for counts in functions if (found := series_of(counts)) is not None]


def by_level(functions: list[list[float]]) -> list[MinuteSeries]:
    """A series of each level of concurrency."""
    return [series for needed in functions for series in levels_of(needed)]
