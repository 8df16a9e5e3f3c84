"""How often pairs of shadows find a version that costs 3 % more, and how often an equal one is called back: rollouts on
a real platform, several at a time, each of a tenant of its own.

A call takes as long as a model says: `--base-ms` and a lognormal noise, so that pairs' costs stray by `--noise`, beside
what the machine adds. A rollout is over once it is called back, or its pairs have run.

    dearer_found            the part of the rollouts of dearer versions that were called back within 300 pairs
    dearer_called_back      the part that were at all: while the evidence holds a rollout, pairs go on
    dearer_pairs_median     pairs until then
    dearer_pairs_p90
    equal_called_back       the part of the rollouts of equal versions that were called back
    dearer_runs, equal_runs
    noise                   by which the logarithms of pairs' costs strayed, the median of rollouts

--runs of each kind, --lanes at a time.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from benchmarks import report
from benchmarks.rollouts import upper_bound
from tests.system.support.platform import PATIENCE_S, Platform, make_tenant, platform
from tests.waiting import wait_until

APP, FUNCTION = "shop", "price"
CODE = """
import math
import random
import time

from pilotlight import App

app = App("shop")


@app.gpu_function(memory="128MiB", min_containers=1, max_containers=1, forecast=False)
def price(item: str = "") -> int:
    # version {number}
    time.sleep({seconds} * math.exp(random.gauss(0.0, {noise}) / math.sqrt(2.0)))
    return 1
"""
DEARER = 1.03
PAIRS, UNJUDGED = 300, 20
OF_A_LANE, OF_AN_AGENT = 3, 18
"""Containers: of the old version, the new one and the twin; and of an agent."""
BEGUN_S, OVER_S = 120.0, 900.0
LOOKED_S = 0.5


class Outcome(NamedTuple):
    """What a rollout came to."""

    is_dearer: bool
    called_back: bool
    pairs: int
    noise: float


@dataclass(kw_only=True)
class Lane:
    """A tenant, whose rollouts follow each other."""

    running: Platform
    options: argparse.Namespace
    key: str
    folder: Path
    url: str
    """Of its gateway: a gateway runs pairs of few tenants at a time."""
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = self._client()

    def _client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_S)

    def deploy(self, ratio: float, number: int, *words: str) -> None:
        file = self.folder / "app.py"
        seconds = self.options.base_ms / 1_000.0 * ratio
        file.write_text(CODE.format(seconds=seconds, noise=self.options.noise, number=number))
        self.running.cli("deploy", str(file), *words, key=self.key)

    def run(self, number: int, *, is_dearer: bool) -> Outcome:
        """One rollout, from its deploy to its end."""
        self.deploy(DEARER if is_dearer else 1.0, number, "--no-traffic")
        terms = {"steps": [50, 100], "every_s": 36_000, "pairs": PAIRS}
        self.http.post(f"/v1/apps/{APP}/rollout", json=terms).raise_for_status()
        came = wait_until(self._past_pairs, "its pairs have run", OVER_S)
        called_back = came["state"] in ("rolling_back", "rolled_back")
        if not called_back:
            self.http.post(f"/v1/apps/{APP}/rollout/abort", json={}).raise_for_status()
        wait_until(lambda: self._shown()["state"] == "rolled_back", "it is over", BEGUN_S)
        seen = next(one for one in came["seen"] if one["guard"] == "pairs")
        by_pairs = called_back and max(came["guards"], key=came["guards"].get) == "pairs"
        if called_back and not by_pairs:
            print(f"called back by something else: {came['guards']}", flush=True)
        return Outcome(is_dearer, called_back, seen["canary"], noise_of(seen))

    def _shown(self) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"/v1/apps/{APP}/rollout").raise_for_status().json()
        return found

    def _past_pairs(self) -> dict[str, Any] | None:
        time.sleep(LOOKED_S)
        shown = self._shown()
        return shown if shown["state"] not in ("planned", "checking", "starting", "pairs") else None

    def keep_calling(self, over: threading.Event) -> None:
        """One call for each pair, or a few more."""
        with self._client() as client:
            while not over.wait(self.options.base_ms / 1_000.0):
                client.post(f"/v1/functions/{APP}.{FUNCTION}/calls", json={"input": {}}).raise_for_status()


def noise_of(seen: dict[str, Any]) -> float:
    """The standard deviation of pairs' logarithms, from the interval that is told of their mean."""
    if seen["low"] is None or seen["high"] is None:
        return 0.0
    return (math.log1p(seen["high"]) - math.log1p(seen["low"])) / (2 * 1.96) * math.sqrt(seen["canary"] - UNJUDGED)


def main() -> None:
    """Run, print, finish."""
    parser = report.arguments("rollout_pairs", __doc__ or "")
    parser.add_argument("--runs", type=int, help="rollouts of each kind (100)")
    parser.add_argument("--lanes", type=int, default=16, help="at a time (16)")
    parser.add_argument("--base-ms", type=float, default=500.0, help="what a call takes, in the middle (500)")
    parser.add_argument("--noise", type=float, default=0.04, help="of the logarithms of pairs' costs (0.04)")
    options = report.parsed(parser)
    options.runs = options.runs or (2 if options.quick else 100)
    # Two cores promise twenty containers: each agent has them to itself, since functions that sleep need none.
    agents = -(-OF_A_LANE * options.lanes // OF_AN_AGENT)
    words = (
        "--cpu-slots",
        str(OF_AN_AGENT),
        "--blanks",
        "0",
        "--extra-gateways",
        "1",
        "--extra-agents",
        str(agents - 1),
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        platform(Path(folder), *words) as running,
    ):
        outcomes = list(all_outcomes(running, options, Path(folder)))
    report.finish("rollout_pairs", figures_of(outcomes))


def all_outcomes(running: Platform, options: argparse.Namespace, folder: Path) -> Iterator[Outcome]:
    """What all rollouts came to, in turns of both kinds."""
    numbers, lock = itertools.count(1), threading.Lock()

    def next_number() -> int:
        with lock:
            return next(numbers)

    def keep_rolling(place: int) -> list[Outcome]:
        own = folder / f"lane{place}"
        own.mkdir()
        key, url = make_tenant(running, f"lane{place}"), running.urls[place % len(running.urls)]
        lane = Lane(running=running, options=options, key=key, folder=own, url=url)
        lane.deploy(1.0, 0)
        over, found = threading.Event(), []
        with ThreadPoolExecutor(1) as callers:
            calling = callers.submit(lane.keep_calling, over)
            try:
                while (number := next_number()) <= 2 * options.runs:
                    found.append(lane.run(number, is_dearer=bool(number % 2)))
                    print(f"{number} of {2 * options.runs}: {found[-1]}", flush=True)
            finally:
                over.set()
            calling.result()
        return found

    with ThreadPoolExecutor(options.lanes) as lanes:
        for found in lanes.map(keep_rolling, range(options.lanes)):
            yield from found


def figures_of(outcomes: list[Outcome]) -> dict[str, float]:
    """What they say together."""
    dearer, equal = [[one for one in outcomes if one.is_dearer is kind] for kind in (True, False)]
    found, false = [one.pairs for one in dearer if one.called_back], sum(one.called_back for one in equal)
    within = sum(pairs <= PAIRS for pairs in found)
    at_least = 1.0 - upper_bound(len(dearer) - within, len(dearer))
    rows = [
        ("3 % dearer", len(dearer), within, f"{at_least:.1%} at least"),
        ("equal", len(equal), false, f"{upper_bound(false, len(equal)):.1%} at most"),
    ]
    report.table("Rollouts by pairs", ("version", "runs", "called back within 300 pairs", "with 95 % confidence"), rows)
    return {
        "dearer_found": within / len(dearer),
        "dearer_called_back": len(found) / len(dearer),
        "dearer_pairs_median": report.median(found) if found else float(PAIRS),
        "dearer_pairs_p90": report.percentile(found, 90) if found else float(PAIRS),
        "equal_called_back": false / len(equal),
        "dearer_runs": float(len(dearer)),
        "equal_runs": float(len(equal)),
        "noise": report.median([one.noise for one in outcomes if one.noise]),
    }


if __name__ == "__main__":
    main()
