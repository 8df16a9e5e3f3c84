"""Who gets how much of a function that many tenants want: an elephant and its mice, over two gateways.

The function sleeps for a known time, so capacity is slots over service time, and the processors stay mostly idle. Each
tenant calls both gateways in turn; the function's home is one of them. Phases:

    a   64 slots of 320 ms (200/s): nine mice at 10/s each, alone and beside an elephant that offers 2,000/s
    b   8 slots of 20 ms: the same
    c   every tenant backlogged, 20 ms to 2 s a call: equal weights, then weights 1:2:4
    d   how busy the slots were in c
    e   in c with equal weights, one tenant comes later: how soon it has its share
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path

import uvloop

from benchmarks import report, scheduler
from benchmarks.http_load import Answer, Caller
from tests.system.platform import Platform, platform

MICE = tuple(f"mouse{n}" for n in range(9))
ELEPHANT = "elephant"
OWNER = "default"
"""Of the key that a platform begins with."""
MOUSE_RATE, ELEPHANT_RATE = 10.0, 2_000.0
PATIENCE_MS = 20_000
SIZES_MS = (20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0)
SLOTS = 64
OUTSTANDING = 40
"""Calls that a backlogged tenant keeps waiting or running: alone they would nearly fill all slots."""


@dataclass(frozen=True, kw_only=True)
class Length:
    """Of a run, in seconds and repetitions."""

    warm: float
    measured: float
    runs: int


@dataclass
class Tenant:
    """Its callers, one per gateway in turn, and what it was answered."""

    callers: list[Caller]
    answers: list[Answer] = field(default_factory=list)
    sizes: list[tuple[float, float]] = field(default_factory=list)
    """(the instant a call ended, its milliseconds) of those that succeeded."""

    def __post_init__(self) -> None:
        self._turn = cycle(self.callers)

    async def call(self, ms: float) -> Answer:
        answer = await next(self._turn).call(input={"ms": ms}, deadline_ms=PATIENCE_MS)
        self.answers.append(answer)
        if answer.status == 200:
            self.sizes.append((answer.ended, ms))
        return answer


def main() -> None:
    """Run, print, finish."""
    options = report.arguments("fairness", __doc__ or "").parse_args()
    length = Length(warm=2.0, measured=6.0, runs=1) if options.quick else Length(warm=10.0, measured=60.0, runs=3)
    names = (*MICE, ELEPHANT)
    options_of_up = ("--extra-gateways", "1", "--blanks", "0", "--cpu-slots", "2")
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), *options_of_up) as running:
        running.deploy("benchmarks/functions/sleeper.py")
        keys = {name: _tenant(running, name) for name in names}
        for function in ("many", "few"):
            running.output(f"sleeper.{function}", ms=1.0)
        figures = uvloop.run(_measure(running, keys, length))
    rounds, runs = (2_000, 1) if options.quick else (20_000, 5)
    figures["pick_push_us_10k"] = scheduler.median_of(partial(scheduler.pick_and_push, 10_000, rounds), runs)
    report.finish("fairness", figures)


def _tenant(running: Platform, name: str) -> str:
    """A tenant of the highest tier that may call the sleeper; its key."""
    running.cli("tenant", "create", name, "--tier", "enterprise")
    running.cli("app", "share", "sleeper", name)
    made = running.cli("key", "create", "--tenant", name, "--scopes", "invoke", "--json")
    return str(json.loads(made.stdout)["key"])


async def _measure(running: Platform, keys: Mapping[str, str], length: Length) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(length.runs):
        alone, beside = await _mice(running, keys, "many", 320.0, length)
        found["mice_p99_ratio"].append(beside / alone)
        alone, beside = await _mice(running, keys, "few", 20.0, length)
        found["mice_p99_extra_service_times"].append((beside - alone) / 20.0)
        shares, busy, late = await _backlogged(running, keys, length, late=True)
        found["jain"].append(jain(list(shares.values())))
        found["work_conservation"].append(busy)
        found["late_tenant_s"].append(late)
        weights = {name: float(2 ** (n % 3)) for n, name in enumerate(MICE)}
        for name, weight in weights.items():
            running.cli("tenant", "set", name, "--weight", str(weight))
        shares, _, _ = await _backlogged(running, {name: keys[name] for name in MICE}, length, late=False)
        found["share_error"].append(share_error(shares, weights))
        for name in weights:
            running.cli("tenant", "set", name, "--weight", "1")
    rows = [(name, *values) for name, values in found.items()]
    report.table("runs", ("figure", *(f"run {n + 1}" for n in range(length.runs))), rows)
    return {name: report.median(values) for name, values in found.items()}


async def _mice(
    running: Platform, keys: Mapping[str, str], function: str, ms: float, length: Length
) -> tuple[float, float]:
    """The mice's p99 in ms: alone, and beside the elephant."""
    tenants = _tenants(running, keys, function)
    p99 = []
    for crowd in ((), (ELEPHANT,)):
        for tenant in tenants.values():
            tenant.answers.clear()
        begins = time.monotonic() + length.warm
        until = begins + length.measured
        async with asyncio.TaskGroup() as group:
            for name in (*MICE, *crowd):
                rate = ELEPHANT_RATE if name == ELEPHANT else MOUSE_RATE
                group.create_task(_offer(tenants[name], rate, ms, until))
        answers = [a for name in MICE for a in tenants[name].answers if a.sent >= begins]
        if failed := sum(answer.status != 200 for answer in answers):
            print(f"{function}: {failed} of {len(answers)} calls of mice failed", file=sys.stderr)
        p99.append(report.percentile([answer.ms for answer in answers], 99))
        served = sum(answer.status == 200 for answer in tenants[ELEPHANT].answers)
        print(
            f"{function}, {'beside the elephant' if crowd else 'alone'}: mice p99 {p99[-1]:.1f} ms, elephant {served}"
        )
    _close(tenants)
    return p99[0], p99[1]


async def _offer(tenant: Tenant, rate: float, ms: float, until: float) -> None:
    """Calls at a rate, whether or not the last ones were answered, at random instants."""
    chance = random.Random(rate)
    at = time.monotonic()
    async with asyncio.TaskGroup() as group:
        while at < until:
            at += chance.expovariate(rate)
            if (wait := at - time.monotonic()) > 0.001:
                await asyncio.sleep(wait)
            group.create_task(_one(tenant, ms))


async def _one(tenant: Tenant, ms: float) -> None:
    await tenant.call(ms)


async def _backlogged(
    running: Platform, keys: Mapping[str, str], length: Length, *, late: bool
) -> tuple[dict[str, float], float, float]:
    """Slot-seconds of each tenant while all are backlogged, how busy the slots were, and how soon the last one had its
    share (seconds; 0 without `late`)."""
    tenants = _tenants(running, keys, "many")
    last = ELEPHANT if late else ""
    until = time.monotonic() + length.warm + length.measured + (length.warm if late else 0.0)
    async with asyncio.TaskGroup() as group:
        for name, tenant in tenants.items():
            if name != last:
                _keep_waiting(group, tenant, name, until)
        await asyncio.sleep(length.warm)
        came = time.monotonic()
        if late:
            _keep_waiting(group, tenants[last], last, until)
            await asyncio.sleep(length.warm)
    begins = came + (length.warm if late else 0.0)
    shares = {name: served(tenant, begins, until) for name, tenant in tenants.items()}
    busy = sum(shares.values()) / (SLOTS * (until - begins))
    _close(tenants)
    return shares, busy, share_after(tenants, last, came) if late else 0.0


def _keep_waiting(group: asyncio.TaskGroup, tenant: Tenant, name: str, until: float) -> None:
    for number in range(OUTSTANDING):
        group.create_task(_again_and_again(tenant, random.Random(f"{name} {number}"), until))


async def _again_and_again(tenant: Tenant, chance: random.Random, until: float) -> None:
    while time.monotonic() < until:
        answer = await tenant.call(chance.choice(SIZES_MS))
        if answer.status != 200:
            await asyncio.sleep((answer.retry_after_ms or 100.0) / 1000)


def served(tenant: Tenant, begins: float, until: float) -> float:
    """Slot-seconds between two instants: calls count for the part of them that lies between."""
    parts = (min(end, until) - max(end - ms / 1000, begins) for end, ms in tenant.sizes)
    return sum(part for part in parts if part > 0)


def share_after(tenants: Mapping[str, Tenant], name: str, came: float, window: float = 0.5) -> float:
    """Seconds after it came until, for a window, the tenant was served at least nine tenths of its part."""
    fair = window * SLOTS / len(tenants)
    step = 0.05
    for number in range(400):
        begins = came + number * step
        if served(tenants[name], begins, begins + window) >= 0.9 * fair:
            return number * step
    return float("inf")


def jain(values: list[float]) -> float:
    """Jain's index: 1 when all are equal (Jain, Chiu, Hawe 1984)."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def share_error(shares: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The largest relative error of a weight's share; tenants of one weight count together."""
    groups: dict[float, float] = defaultdict(float)
    counts: dict[float, int] = defaultdict(int)
    for name, share in shares.items():
        groups[weights[name]] += share
        counts[weights[name]] += 1
    total, weight = sum(groups.values()), sum(w * counts[w] for w in groups)
    return max(abs(groups[w] / total / (w * counts[w] / weight) - 1) for w in groups)


def _tenants(running: Platform, keys: Mapping[str, str], function: str) -> dict[str, Tenant]:
    ref = f"{OWNER}:sleeper.{function}"
    return {name: Tenant([Caller(url, ref, key) for url in running.urls]) for name, key in keys.items()}


def _close(tenants: Mapping[str, Tenant]) -> None:
    for tenant in tenants.values():
        for caller in tenant.callers:
            caller.close()


if __name__ == "__main__":
    main()
