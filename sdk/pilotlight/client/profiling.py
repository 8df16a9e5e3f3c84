"""Measuring a function: real calls at one batch size, and the point of a curve that they make."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pilotlight.client.calls import Calls
from pilotlight.client.retry import QUICK_CONNECT_S, Patience
from pilotlight.client.wire import Outgoing
from pilotlight.errors import BadOutput, Unavailable
from pilotlight_core.model.api.curve_api import CurvePoint
from pilotlight_core.model.errors import CODES, Code

LEAST_BATCHES = 3
"""Fewer say nothing of a 95th percentile, nor of anything else."""
MOST_ROUNDS = 20
"""Rounds in which batches were split again and again: beyond the time that was asked for, no more are tried."""
SHORTEST_MS = 0.001
"""What is shorter is told as 0 by the stopwatch."""
OnStage = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One call: how many ran with it, how long that took on the slice, and what it cost."""

    batch: int
    execute_ms: float
    cost: Decimal


@dataclass(kw_only=True)
class Load:
    """What was sent at one batch size, and what came of it."""

    batch: int
    samples: list[Sample] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def cost(self) -> Decimal:
        return sum((sample.cost for sample in self.samples), Decimal(0))

    @property
    def seen(self) -> float:
        """Calls per second that came back, the way through the platform included."""
        return len(self.samples) / self.seconds if self.seconds else 0.0


def point_of(load: Load, *, batches: bool) -> CurvePoint | None:
    """The point that the calls make which ran at just this batch size; None if there are too few.

    Throughput is what the slice does while it works: the batch over its mean time. That is what a saturated container
    does, whatever the way to it takes.
    """
    mine = sorted(max(SHORTEST_MS, s.execute_ms) for s in load.samples if not batches or s.batch == load.batch)
    made_of = len(mine) // load.batch
    if made_of < LEAST_BATCHES:
        return None
    mean = sum(mine) / len(mine)
    return CurvePoint(
        batch=load.batch,
        throughput=float(f"{load.batch * 1000 / mean:.6g}"),
        p50_ms=quantile(mine, 0.5),
        p95_ms=quantile(mine, 0.95),
        samples=made_of,
    )


def formed(load: Load) -> int:
    """Batches that had just this size."""
    return sum(sample.batch == load.batch for sample in load.samples) // load.batch


def quantile(ascending: Sequence[float], part: float) -> float:
    """The smallest value that so large a part of all does not exceed."""
    rank = max(0, -(-len(ascending) * round(part * 1000) // 1000) - 1)
    return ascending[rank]


def batch_sizes(most: int) -> tuple[int, ...]:
    """1, 2, 4 and so on, up to the most that a container works on at once, which is the last."""
    powers = [1]
    while powers[-1] * 2 < most:
        powers.append(powers[-1] * 2)
    return tuple(dict.fromkeys((*powers, most)))


class NoSlice(Unavailable):
    """No slice of the kind that is measured became free in time."""

    @property
    def meaning(self) -> Code:
        advice = (
            "See what runs there with 'pilotlight fleet', wait longer with --wait, or name another kind with --slice."
        )
        return Code(CODES[self.wire_code].status, "No slice of this kind is free", advice, retry=True)


class Bench:
    """Calls to one function on one kind of slice."""

    def __init__(self, calls: Calls, outgoing: Outgoing) -> None:
        self._calls = calls
        self._outgoing = outgoing

    async def warm_up(self, on_stage: OnStage, wait_s: float) -> Sample:
        """The first call, which a container is started for: it counts for nothing but its cost.

        Raises:
            NoSlice: if it has waited for a slice for `wait_s` seconds. How long a start takes is not bounded here.
        """
        why = ""
        try:
            async with asyncio.timeout(wait_s) as limit:

                def watch(data: dict[str, Any]) -> None:
                    nonlocal why
                    if (name := data.get("name")) == "waiting":
                        why = str((data.get("detail") or {}).get("reason", ""))
                    elif name != "queued":
                        limit.reschedule(None)
                    on_stage(data)

                return await self._call(watch)
        except TimeoutError:
            raise NoSlice(f"No slice of this kind was free within {wait_s:g} s{why and f': {why}'}.") from None

    async def measure(self, batch: int, seconds: float, *, batches: bool) -> Load:
        """Keep a container at this batch size for so long, and longer until there are as many batches as make a point.

        Batches form of calls that are sent together, and one after another; concurrent calls are kept at their number.
        """
        load = Load(batch=batch)
        began = time.monotonic()
        if batches:
            await self._in_rounds(load, began + seconds)
        else:
            async with asyncio.TaskGroup() as group:
                for _ in range(batch):
                    group.create_task(self._again_and_again(load, began + seconds))
        load.seconds = time.monotonic() - began
        return load

    async def _in_rounds(self, load: Load, until: float) -> None:
        rounds = 0
        while (formed(load) < LEAST_BATCHES and rounds < MOST_ROUNDS) or time.monotonic() < until:
            async with asyncio.TaskGroup() as group:
                sent = [group.create_task(self._call()) for _ in range(load.batch)]
            load.samples += [task.result() for task in sent]
            rounds += 1

    async def _again_and_again(self, load: Load, until: float) -> None:
        done = 0
        while done < LEAST_BATCHES or time.monotonic() < until:
            load.samples.append(await self._call())
            done += 1

    async def _call(self, on_stage: OnStage | None = None) -> Sample:
        async with aclosing(self._calls.events(self._outgoing, Patience(connect_within=QUICK_CONNECT_S))) as stream:
            async for name, data in stream:
                if name == "stage" and on_stage is not None:
                    on_stage(data)
                elif name == "result":
                    return sample_of(data)
        raise BadOutput("The platform's answer ended without a result.")


def sample_of(result: dict[str, Any]) -> Sample:
    """What a call's answer says of it."""
    usage, stages = result.get("usage") or {}, (result.get("latency") or {}).get("stages") or {}
    return Sample(
        batch=int(usage.get("batch_size", 1)),
        execute_ms=float(stages.get("execute", 0.0)),
        cost=Decimal(str(usage.get("cost", "0"))),
    )
