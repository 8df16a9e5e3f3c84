"""What is done of what is asked, when more is asked than can be done: once, twice and five times the capacity.

One container of 32 slots whose calls sleep 0.32 s on average (each 0.24 to 0.4 s, so that slots do not fall into
step): 100 calls a second, whatever the machine's speed. Callers do not wait for each other (Poisson arrivals, seeded),
and each gives a call 3 s. Who is refused is told when its turn would have come, waits for so long and comes back, until
it is served or PATIENCE_S are over: offered are callers, and calls are more. What they are told is compared with how
long the call waited that came next to it and was let in.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks import report
from benchmarks.keep_alive import Line
from tests.system.support.platform import Platform, platform

SLOTS = 32
SERVICE_S = 0.32
CAPACITY = SLOTS / SERVICE_S
DEADLINE_S = 3.0
PATIENCE_S = 10.0
"""From a caller's first call; then it gives up."""
LEAST_PAUSE_S = 0.05
WARM_UP_S = 2 * DEADLINE_S
TIMES = (1, 2, 5)
PATH = "/v1/functions/overload.nap/calls"
SPREAD = 0.25
"""Part of its mean by which the time of a call may differ."""
REFUSED = (429, 503)
LONG_S = 1.0
"""Waits from which on Retry-After is held to the truth; and who is refused after as long was let in before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One call. Instants are monotonic seconds; `told` is its Retry-After, `waited` its time in the queue."""

    sent: float
    ended: float
    status: int
    told: float = 0.0
    waited: float = 0.0


@dataclass(kw_only=True, slots=True)
class Caller:
    """One caller: how often it came, and whether it was served. Instants are monotonic seconds."""

    came: float
    calls: int = 0
    served_at: float | None = None


@dataclass(frozen=True, kw_only=True)
class Load:
    """What became of one load, and what the gateway used for it in core seconds per second."""

    calls: list[Call]
    callers: list[Caller]
    """Those that came while it counted, and had all of their patience in it."""
    begun: float
    ended: float
    core: float

    @property
    def served(self) -> float:
        """The part of the callers that were served in the end."""
        return sum(caller.served_at is not None for caller in self.callers) / len(self.callers)

    @property
    def calls_each(self) -> float:
        """How often a caller came."""
        return sum(caller.calls for caller in self.callers) / len(self.callers)

    @property
    def goodput(self) -> float:
        """Answers per second over the capacity."""
        done = sum(call.status == 200 and self.begun <= call.ended < self.ended for call in self.calls)
        return done / (self.ended - self.begun) / CAPACITY

    @property
    def refused(self) -> list[Call]:
        """The calls that were refused at once."""
        return [call for call in self.calls if call.status in REFUSED and call.ended - call.sent < LONG_S]

    @property
    def shed(self) -> list[Call]:
        """The calls that were let in and had to leave the queue again."""
        return [call for call in self.calls if call.status in REFUSED and call.ended - call.sent >= LONG_S]

    @property
    def accepted(self) -> list[Call]:
        """The calls that were let in."""
        return [call for call in self.calls if call.status not in REFUSED] + self.shed

    def retry_after_errors(self) -> list[float]:
        """How far Retry-After was from what the accepted call that came nearest waited, relative to that."""
        waited = sorted((call.sent, call.waited) for call in self.calls if call.status == 200)
        sent = [instant for instant, _ in waited]
        errors = []
        for call in self.refused:
            if call.told and sent:
                place = min(bisect_left(sent, call.sent), len(sent) - 1)
                near = min(waited[max(0, place - 1) : place + 1], key=lambda other: abs(other[0] - call.sent))
                if near[1] >= LONG_S:
                    errors.append(abs(call.told - near[1]) / near[1])
        return errors


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("overload", __doc__ or ""))
    seconds = 5.0 + PATIENCE_S if options.quick else 30.0 + PATIENCE_S
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), "--blanks", "1") as running:
        running.deploy("benchmarks/functions/overload.py")
        running.output("overload.nap", seconds=0.01)
        for _ in range(3):
            running.output("overload.nap", seconds=SERVICE_S)
        loads = {times: asyncio.run(_offer(running, times, seconds)) for times in TIMES}
    _tell(loads)


async def _offer(running: Platform, times: int, seconds: float) -> Load:
    """Offer so many times the capacity; what counts begins when the queue has found its length."""
    chance = random.Random(times)
    idle: list[Line] = []
    calls: list[Call] = []
    callers: list[Caller] = []
    begun = time.monotonic() + WARM_UP_S
    ends = begun + seconds
    async with asyncio.TaskGroup() as group:
        group.create_task(_arrive(running, group, chance, CAPACITY * times, ends, idle, calls, callers))
        await asyncio.sleep(begun - time.monotonic())
        before = report.cpu_seconds(running.pids["gateway"])
        await asyncio.sleep(ends - time.monotonic())
        used = report.cpu_seconds(running.pids["gateway"]) - before
    for line in idle:
        line.close()
    counted = [call for call in calls if call.sent >= begun - DEADLINE_S]
    whole = [caller for caller in callers if begun <= caller.came < ends - PATIENCE_S]
    return Load(calls=counted, callers=whole, begun=begun, ended=ends, core=used / seconds)


async def _arrive(
    running: Platform,
    group: asyncio.TaskGroup,
    chance: random.Random,
    rate: float,
    until: float,
    idle: list[Line],
    calls: list[Call],
    callers: list[Caller],
) -> None:
    due = time.monotonic()
    while due < until:
        due += chance.expovariate(rate)
        if (early := due - time.monotonic()) > 0.001:
            await asyncio.sleep(early)
        seconds = SERVICE_S * chance.uniform(1 - SPREAD, 1 + SPREAD)
        callers.append(caller := Caller(came=time.monotonic()))
        group.create_task(_come_back(running, caller, seconds, until, idle, calls))


async def _come_back(
    running: Platform, caller: Caller, seconds: float, until: float, idle: list[Line], calls: list[Call]
) -> None:
    """Call until served, wait as told in between, and give up when patience or the run is over."""
    while True:
        line = idle.pop() if idle else Line(running.url, running.key)
        call = await _call(line, seconds, idle)
        calls.append(call)
        caller.calls += 1
        if call.status == 200:
            caller.served_at = call.ended
        again = call.ended + max(LEAST_PAUSE_S, call.told)
        if call.status not in REFUSED or again > min(until, caller.came + PATIENCE_S):
            return
        await asyncio.sleep(again - time.monotonic())


async def _call(line: Line, seconds: float, idle: list[Line]) -> Call:
    body = msgspec.json.encode({"input": {"seconds": seconds}, "deadline_ms": DEADLINE_S * 1000})
    sent = time.monotonic()
    answer = await line.post(PATH, body, 30.0)
    ended = time.monotonic()
    idle.append(line)
    if answer is None:
        return Call(sent=sent, ended=ended, status=0)
    if answer.status == 200:
        waited = msgspec.json.decode(answer.body)["latency"]["stages"]["queue"] / 1000.0
        return Call(sent=sent, ended=ended, status=200, waited=waited)
    told = float(answer.headers.get(b"retry-after-ms", b"0")) / 1000.0
    return Call(sent=sent, ended=ended, status=answer.status, told=told)


def _tell(loads: dict[int, Load]) -> None:
    rows = []
    for times, load in loads.items():
        ok = [call.ended - call.sent for call in load.calls if call.status == 200]
        refused = [call.ended - call.sent for call in load.refused]
        rows.append(
            (
                f"{times}x",
                load.goodput,
                len(ok),
                len(refused),
                len(load.shed),
                len(load.accepted) - len(ok) - len(load.shed),
                report.percentile(ok, 50) if ok else 0.0,
                report.percentile(refused, 99) * 1000 if refused else 0.0,
                load.core,
                load.served,
                load.calls_each,
            )
        )
    columns = (
        "offered",
        "goodput",
        "answered",
        "refused",
        "shed",
        "expired",
        "p50 s",
        "p99 of refusals ms",
        "gateway's core",
        "callers served",
        "calls each",
    )
    report.table("overload", columns, rows)
    errors = [error for load in loads.values() for error in load.retry_after_errors()]
    latest = DEADLINE_S + SERVICE_S
    late = sum(call.ended - call.sent > latest for load in loads.values() for call in load.accepted)
    accepted = sum(len(load.accepted) for load in loads.values())
    in_vain = sum(call.status != 200 for load in loads.values() for call in load.accepted)
    report.finish(
        "overload",
        {f"goodput_{times}x": load.goodput for times, load in loads.items()}
        | {
            "late_accepted": late,
            "in_vain_share": in_vain / max(1, accepted),
            "retry_after_error": report.median(errors) if errors else float("nan"),
            "refuse_core_share": loads[5].core - loads[1].core,
        }
        | {f"served_share_{times}x": load.served for times, load in loads.items()}
        | {f"calls_each_{times}x": load.calls_each for times, load in loads.items()},
    )


if __name__ == "__main__":
    main()
