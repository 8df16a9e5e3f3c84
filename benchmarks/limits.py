"""Are limits exact over several gateways: one tenant asks for more than it may at four gateways at once, for 30 s; then
again while the gateway that is the home of its limits is killed in the middle, and again while it is frozen for 8 s.

What a client sees of a call is an interval, from sending to hearing, and it was let in somewhere within. So the bound
is broken for certain if more calls lie wholly inside some window w than burst + rate · w: `overshoot` is by how many
calls it is broken at worst, over all windows. `utilisation` is what was let in, of what the rate allows.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from bisect import bisect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchmarks import report
from benchmarks.keep_alive import Answer, Line
from pilotlight_core.bus import connect
from pilotlight_core.model.subjects import SHARD_BUCKET, shard_of
from pilotlight_gateway.cluster.shard_plan import ShardRecord
from tests.system.support.platform import Platform, platform
from tests.waiting import wait_until

GATEWAYS = 4
RATE, BURST = 200.0, 40.0
LINES = 10
"""Connections to each gateway."""
OFFERED = 1.6
"""Times the rate, of which each gateway gets an equal part."""
WARM_S = 2.0
"""Before anything is counted: the burst goes by."""
FROZEN_S = 8.0
PEACE_S = 4.0
"""For a gateway that came back to get its shards back."""
PATH = "/v1/functions/bench.echo/calls"
BODY = b'{"input":{"text":"hello"}}'
TENANT = "default"

Event = Callable[[Platform], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A call that was let in, as its client saw it. Monotonic seconds."""

    sent: float
    heard: float


@dataclass(kw_only=True)
class Run:
    """What one run of the load saw."""

    began: float
    seconds: float
    seen: list[Seen] = field(default_factory=list)
    refused: int = 0
    failed: int = 0
    told: list[tuple[float, float]] = field(default_factory=list)
    """Of those that were 503: when, and the seconds after which to come again."""

    def take(self, sent: float, answer: Answer | None) -> None:
        """Count one answer; None: the connection broke."""
        if answer is not None and answer.status == 429:
            self.refused += 1
        elif answer is not None and b"ratelimit" in answer.headers:
            self.seen.append(Seen(sent=sent, heard=time.monotonic()))
        else:
            self.failed += 1
            if answer is not None and answer.status == 503:
                self.told.append((time.monotonic(), int(answer.headers[b"retry-after-ms"]) / 1000))

    def wait_errors(self) -> list[float]:
        """How wrong what 503s told was, relative to when the next call was let in, where that was 1 s or more."""
        let_in = sorted(call.heard for call in self.seen)
        true = [(bisect(let_in, at), at, told) for at, told in self.told]
        waits = [(let_in[index] - at, told) for index, at, told in true if index < len(let_in)]
        return [abs(told - wait) / wait for wait, told in waits if wait >= 1.0]

    @property
    def overshoot(self) -> float:
        """Calls beyond the bound in the worst window; 0: it holds."""
        return max(0.0, worst_excess(self.seen))

    @property
    def utilisation(self) -> float:
        """Calls let in, of those that the rate allows."""
        inside = sum(self.began <= call.heard < self.began + self.seconds for call in self.seen)
        return inside / (RATE * self.seconds)


def worst_excess(seen: Sequence[Seen], rate: float = RATE, burst: float = BURST) -> float:
    """The most calls by which those wholly inside one window exceed burst + rate · w; negative: room was left."""
    by_heard = sorted(seen, key=lambda call: call.heard)
    worst = -burst
    for start in {call.sent for call in seen}:
        inside = 0
        for call in by_heard:
            if call.sent >= start:
                inside += 1
                excess = inside - burst - rate * (call.heard - start)
                if excess > worst:
                    worst = excess
    return worst


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("limits", (__doc__ or "").splitlines()[0]))
    seconds = 6.0 if options.quick else 30.0
    with (
        tempfile.TemporaryDirectory() as folder,
        platform(Path(folder), "--extra-gateways", str(GATEWAYS - 1), "--blanks", "0", "--cpu-slots", "1") as running,
    ):
        running.deploy("benchmarks/functions/app.py")
        running.output("bench.echo", text="hello")
        running.cli("quota", "set", TENANT, f"requests_per_s={RATE}", f"burst={BURST}")
        steady = asyncio.run(_run(running, seconds, _nothing))
        killed = asyncio.run(_run(running, seconds, _kill))
        wait_until(running.is_ready, "the killed gateway is back")
        time.sleep(PEACE_S)
        frozen = asyncio.run(_run(running, seconds + FROZEN_S / 2, _freeze))
    _tell(steady, killed, frozen)


async def _run(running: Platform, seconds: float, event: Event) -> Run:
    """Load all gateways, let something happen in the middle, and count."""
    run = Run(began=time.monotonic() + WARM_S, seconds=seconds)
    ends = run.began + seconds
    async with asyncio.TaskGroup() as group:
        for url in running.urls:
            for number in range(LINES):
                group.create_task(_load(run, Line(url, running.key), number, ends))
        await asyncio.sleep(WARM_S + seconds / 2)
        await event(running)
    return run


async def _load(run: Run, line: Line, number: int, ends: float) -> None:
    """One client: at its own pace, one call after the other, on a new connection when the old one broke."""
    pause = LINES * GATEWAYS / (RATE * OFFERED)
    due = time.monotonic() + pause * number / LINES
    while (due := max(due + pause, time.monotonic())) < ends:
        await asyncio.sleep(due - time.monotonic())
        sent = time.monotonic()
        run.take(sent, await line.post(PATH, BODY, patience=5.0))
    line.close()


async def _nothing(_: Platform) -> None:
    return


async def _kill(running: Platform) -> None:
    os.kill(running.pids[await _home(running)], signal.SIGKILL)


async def _freeze(running: Platform) -> None:
    pid = running.pids[await _home(running)]
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(FROZEN_S)
    finally:
        os.kill(pid, signal.SIGCONT)


async def _home(running: Platform) -> str:
    """The part of the platform that is the home of the tenant's limits."""
    async with connect(running.nats_url, name="benchmark") as bus:
        entry = await bus.kv(SHARD_BUCKET).get(str(shard_of(TENANT)))
    assert entry is not None
    return msgspec.msgpack.decode(entry.value, type=ShardRecord).home.name


def _tell(steady: Run, killed: Run, frozen: Run) -> None:
    runs = {"nothing happens": steady, "its home is killed": killed, "its home is frozen": frozen}
    rows = [
        (name, len(run.seen), run.refused, run.failed, worst_excess(run.seen), run.utilisation)
        for name, run in runs.items()
    ]
    columns = ("while", "let in", "refused", "failed", "worst excess, calls", "utilisation")
    report.table(f"{RATE:g}/s with a burst of {BURST:g}, {OFFERED:g} times as much asked of 4 gateways", columns, rows)
    report.finish(
        "limits",
        {
            "overshoot": steady.overshoot,
            "utilisation": steady.utilisation,
            "overshoot_kill": killed.overshoot,
            "utilisation_kill": killed.utilisation,
            "overshoot_freeze": frozen.overshoot,
            "utilisation_freeze": frozen.utilisation,
            "retry_after_error_kill": report.median(killed.wait_errors() or [0.0]),
            "retry_after_error_freeze": report.median(frozen.wait_errors() or [0.0]),
        },
    )


if __name__ == "__main__":
    main()
