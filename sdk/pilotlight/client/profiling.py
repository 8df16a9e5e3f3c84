"""Measures a function by real calls at one batch size, for one point of a curve."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from pilotlight.client.answer_pace import AnswerPace, TokenTimes, pace_of
from pilotlight.client.resources.calls import CallsClient
from pilotlight.client.transport.retry import QUICK_CONNECT_S, RequestRetries
from pilotlight.client.transport.wire import OutgoingCall
from pilotlight.definitions.errors import BadOutput, Unavailable
from pilotlight_core.model.api.curve_api import CurvePoint
from pilotlight_core.model.errors import CODES, Code

MIN_BATCHES = 3
"""Fewer give no 95th percentile."""
MAX_ROUNDS = 20
"""If batches are split again and again."""
SHORTEST_MS = 0.001
"""The platform reports shorter times as 0."""
OnStage = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class ProfileSample:
    """One call: its batch's size, its time on the slice, its cost."""

    batch: int
    execute_ms: float
    cost: Decimal
    tokens: TokenTimes | None = None
    """None: it answered with none."""


@dataclass(kw_only=True)
class ProfileLoad:
    """The calls at one batch size, and their seconds."""

    batch: int
    samples: list[ProfileSample] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def cost(self) -> Decimal:
        return sum((sample.cost for sample in self.samples), Decimal(0))

    @property
    def pace(self) -> AnswerPace | None:
        """How fast the tokens of an engine came; None: there were none."""
        answers = [sample.tokens for sample in self.samples if sample.tokens is not None]
        return pace_of(self.batch, answers, self.seconds)

    @property
    def calls_per_second(self) -> float:
        """As seen by the caller, the way through the platform included."""
        return len(self.samples) / self.seconds if self.seconds else 0.0


def point_of(load: ProfileLoad, *, batches: bool) -> CurvePoint | None:
    """Return the point of a load; None if too few of its calls ran in batches of just this size.

    Throughput is what came back: the way through the platform takes its time, which is most of it where a call takes
    microseconds. The percentiles are of the time on the slice.
    """
    mine = sorted(max(SHORTEST_MS, s.execute_ms) for s in load.samples if not batches or s.batch == load.batch)
    made_of = len(mine) // load.batch
    if made_of < MIN_BATCHES:
        return None
    return CurvePoint(
        batch=load.batch,
        throughput=float(f"{load.calls_per_second:.6g}"),
        p50_ms=quantile(mine, 0.5),
        p95_ms=quantile(mine, 0.95),
        samples=made_of,
    )


def count_batches(load: ProfileLoad) -> int:
    return sum(sample.batch == load.batch for sample in load.samples) // load.batch


def quantile(ascending: Sequence[float], part: float) -> float:
    """Return the smallest value that `part` of all do not exceed."""
    rank = max(0, -(-len(ascending) * round(part * 1000) // 1000) - 1)
    return ascending[rank]


def batch_sizes(most: int) -> tuple[int, ...]:
    """Return 1, 2, 4 … below `most`, and `most`."""
    powers = [1]
    while powers[-1] * 2 < most:
        powers.append(powers[-1] * 2)
    return tuple(dict.fromkeys((*powers, most)))


class NoSlice(Unavailable):
    """No slice of the measured kind became free in time."""

    @property
    def meaning(self) -> Code:
        advice = (
            "See what runs there with 'pilotlight fleet', wait longer with --wait, or name another kind with --slice."
        )
        return Code(CODES[self.wire_code].status, "No slice of this kind is free", advice, retry=True)


class SliceBenchmark:
    """Calls one function on one kind of slice."""

    def __init__(self, calls: CallsClient, call: OutgoingCall) -> None:
        self._calls = calls
        self._outgoing = call
        self._has_tokens = False
        """Whether its last answer had some: then no call waits for its turn, or its first token would be late."""

    async def warm_up(self, on_stage: OnStage, wait_s: float) -> ProfileSample:
        """Make the first call, which starts a container and counts only for its cost.

        Raises:
            NoSlice: after `wait_s` seconds without a slice. The start itself is not bounded.
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

    async def measure(self, batch: int, seconds: float, *, batches: bool, most: int) -> ProfileLoad:
        """Load a container at one batch size for `seconds`, or longer until there are batches enough for a point.

        With the largest batch, of `most`, as many calls again wait, so that the container is never idle. Below it there
        are `batch` callers, since more would make larger batches; `batches`: in rounds, which form batches.
        An engine has `batch` callers too: of a call that waits, the first token would say nothing.
        """
        load = ProfileLoad(batch=batch)
        began_at = time.monotonic()
        if batches and batch < most:
            await self._call_in_rounds(load, began_at + seconds)
        else:
            async with asyncio.TaskGroup() as group:
                for _ in range(batch if batch < most or self._has_tokens else 2 * batch):
                    group.create_task(self._call_repeatedly(load, began_at + seconds, batches=batches))
        load.seconds = time.monotonic() - began_at
        return load

    async def _call_in_rounds(self, load: ProfileLoad, until: float) -> None:
        rounds = 0
        while (count_batches(load) < MIN_BATCHES and rounds < MAX_ROUNDS) or time.monotonic() < until:
            async with asyncio.TaskGroup() as group:
                sent = [group.create_task(self._call()) for _ in range(load.batch)]
            load.samples += [task.result() for task in sent]
            rounds += 1

    async def _call_repeatedly(self, load: ProfileLoad, until: float, *, batches: bool) -> None:
        done = 0
        while done < MIN_BATCHES or self._lacks_batches(load, batches=batches) or time.monotonic() < until:
            load.samples.append(await self._call())
            done += 1

    def _lacks_batches(self, load: ProfileLoad, *, batches: bool) -> bool:
        tried = len(load.samples) >= MAX_ROUNDS * load.batch
        return batches and not tried and count_batches(load) < MIN_BATCHES

    async def _call(self, on_stage: OnStage | None = None) -> ProfileSample:
        retries = RequestRetries(connect_within=QUICK_CONNECT_S)
        tokens = TokenTimes(time.monotonic())
        async with aclosing(self._calls.stream_events(self._outgoing, retries)) as stream:
            async for name, data in stream:
                if name == "stage" and on_stage is not None:
                    on_stage(data)
                elif name == "chunk":
                    tokens.add(data.get("value"), time.monotonic())
                elif name == "result":
                    self._has_tokens = bool(tokens.tokens)
                    return replace(sample_of(data), tokens=tokens if tokens.tokens else None)
        raise BadOutput("The platform's answer ended without a result.")


def sample_of(result: dict[str, Any]) -> ProfileSample:
    usage, stages = result.get("usage") or {}, (result.get("latency") or {}).get("stages") or {}
    return ProfileSample(
        batch=int(usage.get("batch_size", 1)),
        execute_ms=float(stages.get("execute", 0.0)),
        cost=Decimal(str(usage.get("cost", "0"))),
    )
