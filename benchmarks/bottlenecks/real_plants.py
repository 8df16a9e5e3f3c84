"""The same bottlenecks on a platform of real processes: GPUs in software, guests that sleep as long as a batch takes.

What needs a faster machine than it is measured on (a gateway whose thread is the bound, a full link) and engines are
left to the model.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.keep_alive import Line
from pilotlight_gateway.diagnosis.suspects import Promise
from tests.system.support.platform import Platform, make_tenant, platform

FLEET = ("--fake-gpus", "6xH100,2xL4", "--cpu-slots", "1", "--blanks", "0")
PATIENCE_S = 30.0
DONE_BY = ("pilotlight scale", "pilotlight quota set")
"""Commands that are run as they are told."""
SETTLES_S = 6.0


@dataclass(frozen=True, kw_only=True)
class RealPlant:
    """A function of `benchmarks/functions/planted.py` and its callers."""

    name: str
    ref: str
    rate: float = 0.0
    """Per second, whatever becomes of them; or:"""
    callers: int = 0
    burst: int = 1
    seconds: float = 14.0
    wanted: float | None = None
    argument: dict[str, Any] | None = None
    prepare: Callable[[Platform], Any] | None = None
    beside: tuple[int, dict[str, Any]] | None = None
    """Callers of another tenant, and what they send."""
    warm: bool = True


def _limit_rate(running: Platform) -> None:
    running.cli("quota", "set", "default", "requests_per_s=15", "burst=5", "--function", "planted.limited")


PLANTS = (
    RealPlant(name="nothing", ref="planted.quick", rate=20),
    RealPlant(name="gpu", ref="planted.gpu", rate=115),
    RealPlant(name="starved", ref="planted.starved", rate=75),
    RealPlant(name="waits", ref="planted.waits", rate=8),
    RealPlant(name="cold", ref="planted.Cold", rate=2, burst=6, seconds=30, warm=False),
    RealPlant(name="placement", ref="planted.placed", rate=70),
    RealPlant(
        name="neighbour", ref="planted.shared", rate=6, argument={"ms": 20.0}, beside=(12, {"ms": 400.0}), seconds=18
    ),
    RealPlant(name="client", ref="planted.hurried", callers=2, wanted=400.0),
    RealPlant(name="crash_loop", ref="planted.Broken", rate=3, seconds=16, warm=False),
    RealPlant(name="cpu", ref="planted.decodes", rate=16),
    RealPlant(name="quota", ref="planted.limited", rate=40, prepare=_limit_rate),
)
"""In an order in which none disturbs the next one; a limit comes last, since what is refused is remembered."""


@dataclass
class Answers:
    """What callers saw."""

    times_ms: list[float] = field(default_factory=list)
    """Of calls that ended well."""
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: float = 1.0

    def metrics(self) -> dict[str, float]:
        """What promises are about, as callers see it."""
        ordered = sorted(self.times_ms)
        total = max(1, self.statuses.total())
        return {
            "p95_ms": ordered[int(0.95 * (len(ordered) - 1))] if ordered else 0.0,
            "mean_ms": sum(ordered) / max(1, len(ordered)),
            "slowed_mean_ms": sum(ordered) / max(1, len(ordered)),
            "rate": len(ordered) / self.seconds,
            "limited_part": self.statuses[429] / total,
            "failing_part": self.statuses[500] / total,
        }


class RealCallers:
    """Callers of one plant, in this process."""

    def __init__(self, running: Platform, plant: RealPlant, key: str, argument: dict[str, Any]) -> None:
        self._running, self._plant, self._key = running, plant, key
        self._path = f"/v1/functions/{plant.ref}/calls"
        self._body = json.dumps({"input": argument}).encode()
        self._idle: list[Line] = []
        self.answers = Answers(seconds=plant.seconds)

    async def offer(self, seconds: float, seed: int) -> None:
        """Call at a rate, by chance."""
        chance, due = random.Random(seed), time.monotonic()
        ends = due + seconds
        async with asyncio.TaskGroup() as group:
            while due < ends:
                for _ in range(self._plant.burst):
                    group.create_task(self._call())
                due += chance.expovariate(self._plant.rate / self._plant.burst)
                await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def keep(self, callers: int, seconds: float) -> None:
        """Call from so many callers, each one after the other."""
        ends = time.monotonic() + seconds

        async def caller() -> None:
            while time.monotonic() < ends:
                await self._call()

        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(caller())

    async def _call(self) -> None:
        line = self._idle.pop() if self._idle else Line(self._running.url, self._key)
        sent = time.monotonic()
        answer = await line.post(self._path, self._body, PATIENCE_S)
        status = answer.status if answer is not None else 0
        self.answers.statuses[status] += 1
        if status == 200:
            self.answers.times_ms.append((time.monotonic() - sent) * 1000)
        if answer is not None:
            self._idle.append(line)
            if status == 429 or status >= 500:
                await asyncio.sleep(0.5)


def loaded(running: Platform, plant: RealPlant, other_key: str, seed: int) -> Answers:
    """Load a plant for a while."""
    own = RealCallers(running, plant, running.key, plant.argument or {"x": 1})

    async def load() -> None:
        async with asyncio.TaskGroup() as group:
            if plant.beside is not None:
                count, theirs = plant.beside
                shared = RealPlant(name="", ref=f"default:{plant.ref}")
                group.create_task(RealCallers(running, shared, other_key, theirs).keep(count, plant.seconds))
            if plant.callers:
                await own.keep(plant.callers, plant.seconds)
            else:
                await own.offer(plant.seconds, seed)

    asyncio.run(load())
    return own.answers


@dataclass(frozen=True, kw_only=True)
class RealFinding:
    """What the platform said of a plant, and what became of its promises after its command."""

    plant: RealPlant
    found: dict[str, Any]
    kept: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        return bool(self.found.get("name") == self.plant.name)


def diagnosed(running: Platform, plant: RealPlant, other_key: str, seed: int) -> RealFinding:
    """Load a plant, ask, do what is said first if a command does it, and load it again."""
    if plant.prepare is not None:
        plant.prepare(running)
    if plant.warm:
        running.call(plant.ref, timeout=60.0, **plant.argument or {"x": 1})
    loaded(running, plant, other_key, seed)
    params = {"window": "1m"} | ({"rate": str(plant.wanted)} if plant.wanted else {})
    found: dict[str, Any] = running.http.get(f"/v1/functions/{plant.ref}/diagnosis", params=params).json()
    finding = RealFinding(plant=plant, found=found)
    first = found["cures"][0] if found.get("cures") else {}
    command = str(first.get("command", ""))
    if not finding.is_right or not command.startswith(DONE_BY):
        return finding
    running.cli(*command.split()[1:])
    time.sleep(SETTLES_S)  # containers start, and the queue of before is gone
    metrics = loaded(running, plant, other_key, seed + 100).metrics()
    kept: list[str] = []
    broken: list[str] = []
    for each in found["promises"]:
        if each["metric"] in metrics:
            promise, now = Promise(**each), metrics[each["metric"]]
            told = f"{promise.metric}: {now:.4g}, promised {promise.value:.4g}"
            (kept if promise.is_kept(now) else broken).append(told)
    return RealFinding(plant=plant, found=found, kept=tuple(kept), broken=tuple(broken))


def diagnosed_really(names: tuple[str, ...] = (), seed: int = 1) -> Iterator[RealFinding]:
    """All plants, or those that are named, on one platform, each after the other."""
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), *FLEET) as running:
        running.deploy("benchmarks/functions/planted.py")
        other = make_tenant(running, "bully")
        running.cli("app", "share", "planted", "bully")
        for plant in PLANTS:
            if not names or plant.name in names:
                yield diagnosed(running, plant, other, seed)
