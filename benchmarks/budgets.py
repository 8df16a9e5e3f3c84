"""Do hard budgets hold while the money is spent: 500 callers at four gateways hold calls open under a budget for 100 of
them, then short calls spend what a budget has; both again while the gateway that is the home of the budget is killed in
the middle.

A tenant of its own calls and pays for calls alone, since containers are another's. `overspend` is the excess of what
calls cost, by the ledger, over the budget, as a part of it, or of those that were open at a time over those whose worst
cases fit. `admitted_of_possible` is what was spent of it when for seconds nobody was let in any more.

`unfunded_s` is the longest of a few times from when the containers' owner is given a budget that is used up to when the
idle container that a floor keeps is drained: the home notes it, and the controller hears of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchmarks import report
from benchmarks.keep_alive import Answer, Line
from pilotlight_core.bus import connect
from pilotlight_core.model.subjects import SHARD_BUCKET, shard_of
from pilotlight_gateway.cluster.shard_plan import ShardRecord
from tests.system.support.platform import Platform, make_tenant, platform
from tests.waiting import wait_until

GATEWAYS = 4
OWNER = "default"
"""Of the functions."""
TENANT = "payer"
FITS = 100
"""Worst cases that a budget has room for."""
CALLERS = 500
SPENDERS = 8
HELD_S = 4.0
PAUSE_S = 0.1
"""Between two tries of a caller that was refused."""
SPENDERS_PAUSE_S = 0.02
"""The same of one that spends: at the end one call at a time is let in."""
UNFUNDED_RUNS = 10
LOOK_S = 0.02
QUIET_S = 5.0
"""So long nobody is let in, then a budget is used up."""
QUIET_KILLED_S = 75.0
"""The same after a death: what may be spent is presumed to be until the ledger tells."""
LEDGER_S = 6.0
BODY_S = 30.0

Event = Callable[[Platform], Awaitable[None]]


@dataclass(kw_only=True)
class Spending:
    """What callers saw of one budget. Monotonic seconds."""

    amount: float
    worst: float
    """Dollars."""
    held_s: float
    let_in: list[tuple[float, float]] = field(default_factory=list)
    """When a call that was let in was sent, and over."""
    cost: float = 0.0
    """Of those that were answered."""
    refused: int = 0
    failed: int = 0
    why: Counter[str] = field(default_factory=Counter)
    """By status, "none": the connection broke."""
    last: float = 0.0
    """When a call was last let in."""
    billed: float = 0.0
    """By the ledger, at the end."""

    def take(self, sent: float, answer: Answer | None) -> None:
        """Count one answer; None: the connection broke, and the call runs on."""
        at = time.monotonic()
        if answer is not None and answer.status == 402:
            self.refused += 1
        elif answer is not None and answer.status == 200:
            self.let_in.append((sent, at))
            self.cost += float(msgspec.json.decode(answer.body)["usage"]["cost"])
            self.last = at
        else:
            self.failed += 1
            self.why["none" if answer is None else str(answer.status)] += 1

    @property
    def most_open(self) -> int:
        """The most calls that were open at a time, surely: each was for `held_s`, some time between sent and over."""
        surely = [(over - self.held_s, sent + self.held_s) for sent, over in self.let_in]
        edges = sorted(edge for first, last in surely if first < last for edge in ((first, 1), (last, -1)))
        most = now = 0
        for _, step in edges:
            now += step
            most = max(most, now)
        return most

    @property
    def overspend(self) -> float:
        """As a part of the budget; 0: it held."""
        open_beyond = (self.most_open - FITS) / FITS if self.held_s else 0.0
        return max(0.0, self.billed / self.amount - 1.0, open_beyond)

    @property
    def admitted(self) -> float:
        """What was spent, of what the budget allows."""
        return self.billed / self.amount


@dataclass(kw_only=True)
class Bench:
    """A platform, the key of who pays, and how long things take."""

    platform: Platform
    key: str
    seconds: float
    quick: bool

    def worst_of(self, function: str) -> float:
        """Dollars that a call reserves: under a budget of nothing it is told."""
        self._set(function, 0.0)
        told: list[float] = []

        def is_refused() -> bool:
            with self.platform.as_holder_of(self.key) as client:
                answer = client.post(path_of(function), json={"input": {"seconds": 0} if "hold" in function else {}})
            if answer.status_code == 402:
                told.append(float(answer.json()["budget"]["asked_usd"]))
            return bool(told)

        wait_until(is_refused, "the budget is known")
        return told[-1]

    def allow(self, function: str, amount: float) -> None:
        """Give a function's calls so many dollars."""
        self._set(function, amount)
        time.sleep(2.0)

    def _set(self, function: str, amount: float) -> None:
        self.platform.cli(
            "billing", "budget", "set", TENANT, f"{amount:.9f}", "--period", "lifetime", "--function", ref_of(function)
        )  # fmt: skip

    def billed(self, function: str) -> float:
        """Dollars that the ledger has of a function's calls."""
        with self.platform.as_holder_of(self.key) as client:
            lines = client.get("/v1/usage?group=function").json()["lines"]
        return sum(float(line["cost"]) for line in lines if line["function"].endswith(function))


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("budgets", (__doc__ or "").splitlines()[0]))
    with (
        tempfile.TemporaryDirectory() as folder,
        platform(Path(folder), "--extra-gateways", str(GATEWAYS - 1), "--blanks", "0", "--cpu-slots", "4") as running,
    ):
        running.deploy("benchmarks/functions/budgets.py")
        bench = Bench(platform=running, key=make_tenant(running, TENANT), seconds=2 * HELD_S, quick=bool(options.quick))
        running.cli("app", "share", "budgets", TENANT)
        held = asyncio.run(_held(bench, "hold", _nothing))
        spent = asyncio.run(_spent(bench, "brief", _nothing))
        held_kill = asyncio.run(_held(bench, "hold_again", _kill))
        wait_until(running.is_ready, "the killed gateway is back")
        spent_kill = asyncio.run(_spent(bench, "brief_again", _kill))
        unfunded_s = max(time_unfunded(running, "brief", UNFUNDED_RUNS))
    _tell(held, spent, held_kill, spent_kill, unfunded_s)


def time_unfunded(running: Platform, function: str, runs: int) -> list[float]:
    """Seconds until a floor's container is drained, each time that its owner's budget is used up."""
    path, took = f"/v1/tenants/{OWNER}/budgets", list[float]()
    running.cli("scale", f"budgets.{function}", "--min", "1")
    for _ in range(runs):
        wait_until(lambda: _kept(running, function), "a container is kept")
        running.http.put(path, json={"usd": "0.000000001", "period": "lifetime"}).raise_for_status()
        begun = time.monotonic()
        while _kept(running, function):
            time.sleep(LOOK_S)
        took.append(time.monotonic() - begun)
        running.http.delete(f"{path}/lifetime").raise_for_status()
    running.cli("scale", f"budgets.{function}", "--reset")
    return took


def _kept(running: Platform, function: str) -> bool:
    known = running.containers("budgets")
    return any(one["function"].rpartition(".")[2] == function and one["state"] in ("loading", "ready") for one in known)


async def _held(bench: Bench, function: str, event: Event) -> Spending:
    """All callers hold calls open, again and again."""
    worst = await asyncio.to_thread(bench.worst_of, function)
    run = Spending(amount=FITS * worst, worst=worst, held_s=HELD_S)
    await asyncio.to_thread(bench.allow, function, run.amount)
    ends = time.monotonic() + bench.seconds
    body = msgspec.json.encode({"input": {"seconds": HELD_S}})
    async with asyncio.TaskGroup() as group:
        for number in range(CALLERS):
            group.create_task(_call(bench, run, number, function, body, ends))
        await asyncio.sleep(HELD_S / 2)
        await event(bench.platform)
    return await _settled(bench, run, function)


async def _spent(bench: Bench, function: str, event: Event) -> Spending:
    """Short calls until nobody is let in any more."""
    worst = await asyncio.to_thread(bench.worst_of, function)
    run = Spending(amount=(FITS / 4 if bench.quick else FITS) * worst, worst=worst, held_s=0.0)
    await asyncio.to_thread(bench.allow, function, run.amount)
    quiet_s = QUIET_S if event is _nothing else QUIET_KILLED_S
    run.last = time.monotonic()
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for number in range(SPENDERS):
            group.create_task(_spend(bench, run, number, function, stop))
        happened = event is _nothing
        while time.monotonic() - run.last < quiet_s:
            await asyncio.sleep(0.2)
            if not happened and run.cost > run.amount / 2:
                happened = True
                await event(bench.platform)
        stop.set()
    return await _settled(bench, run, function)


async def _call(bench: Bench, run: Spending, number: int, function: str, body: bytes, ends: float) -> None:
    urls = bench.platform.urls
    attempt = number
    while time.monotonic() < ends:
        line = Line(urls[attempt % len(urls)], bench.key)
        sent = time.monotonic()
        answer = await line.post(path_of(function), body, patience=BODY_S)
        run.take(sent, answer)
        line.close()
        attempt += answer is None
        await asyncio.sleep(PAUSE_S if answer is not None and answer.status == 200 else 5 * PAUSE_S)


async def _spend(bench: Bench, run: Spending, number: int, function: str, stop: asyncio.Event) -> None:
    urls = bench.platform.urls
    attempt = number
    line = Line(urls[attempt % len(urls)], bench.key)
    while not stop.is_set():
        sent = time.monotonic()
        answer = await line.post(path_of(function), b'{"input":{}}', patience=BODY_S)
        run.take(sent, answer)
        if answer is None:
            attempt += 1
            line = Line(urls[attempt % len(urls)], bench.key)
        if answer is None or answer.status != 200:
            await asyncio.sleep(SPENDERS_PAUSE_S)
    line.close()


async def _settled(bench: Bench, run: Spending, function: str) -> Spending:
    """Wait until the ledger has what ran."""
    print(f"{function}: {len(run.let_in)} calls were let in, for {run.cost:.3g} of {run.amount:.3g} USD", flush=True)
    before = -1.0
    while before != run.billed or before < 0.0:
        before = run.billed
        await asyncio.sleep(LEDGER_S if not bench.quick else LEDGER_S / 2)
        run.billed = await asyncio.to_thread(bench.billed, function)
    return run


async def _nothing(_: Platform) -> None:
    return


async def _kill(running: Platform) -> None:
    async with connect(running.nats_url, name="benchmark") as bus:
        entry = await bus.kv(SHARD_BUCKET).get(str(shard_of(TENANT)))
    assert entry is not None
    os.kill(running.pids[msgspec.msgpack.decode(entry.value, type=ShardRecord).home.name], signal.SIGKILL)


def ref_of(function: str) -> str:
    """With its owner."""
    return f"{OWNER}:budgets.{function}"


def path_of(function: str) -> str:
    """Where it is called."""
    return f"/v1/functions/{ref_of(function)}/calls"


def _tell(held: Spending, spent: Spending, held_kill: Spending, spent_kill: Spending, unfunded_s: float) -> None:
    runs = {
        "held open": held, "short calls": spent, "held open, its home is killed": held_kill,
        "short calls, its home is killed": spent_kill,
    }  # fmt: skip
    rows = [
        (
            name,
            len(run.let_in),
            run.refused,
            " ".join(f"{why}:{count}" for why, count in run.why.items()),
            run.most_open if run.held_s else "",
            run.amount,
            run.billed,
            run.admitted,
            run.overspend,
        )
        for name, run in runs.items()
    ]
    columns = ("while", "let in", "refused", "failed", "at once", "budget, USD", "spent", "of it", "overspend")
    report.table(f"Hard budgets for {FITS} worst cases, at {GATEWAYS} gateways", columns, rows)
    report.finish(
        "budgets",
        {
            "overspend": max(held.overspend, spent.overspend),
            "at_once": held.most_open,
            "admitted_of_possible": spent.admitted,
            "overspend_kill": max(held_kill.overspend, spent_kill.overspend),
            "at_once_kill": held_kill.most_open,
            "admitted_of_possible_kill": spent_kill.admitted,
            "unfunded_s": unfunded_s,
        },
    )


if __name__ == "__main__":
    main()
