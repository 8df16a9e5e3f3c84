"""What a tenant notices of another one that attacks the gateway: small bodies that stand for much.

A quiet tenant calls a function that does nothing, 20 times a second; each call counts from when it was due. Beside it,
eight connections of a free tenant repeat one attack. Reported for each attack: the quiet tenant's median and p99, its
failed calls, and the most memory that the gateway held. The attackers' own client is a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks import report
from benchmarks.keep_alive import Line
from tests.security.memory import forget_peak, peak_mb
from tests.system.support.platform import Platform, platform

RATE = 20.0
ATTACKERS = 8
PATIENCE_S = 30.0
SETTLE_S = 2.0
ECHO = "/v1/functions/bench.echo/calls"
HOSTILE = "/v1/functions/attacker:hostile.{}/calls"
DEPLOY = "/v1/apps/big/deploys"


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A request that is repeated."""

    path: str
    body: Callable[[], Any]
    """Makes what is sent as JSON."""
    accept: str = "application/json"


def _of(function: str, arguments: Callable[[], dict[str, Any]], accept: str = "application/json") -> Attack:
    return Attack(path=HOSTILE.format(function), body=lambda: {"input": arguments()}, accept=accept)


def _files(size: float) -> dict[str, Any]:
    return {"functions": [], "files": [{"path": "a", "sha256": "b", "size": size}] * 150_000}


ATTACKS = {
    "nothing": None,
    "arrays of thin sides, 20 KB": _of("array", lambda: {"shape": [20_000] + [1] * 60}),
    "arrays of thin sides, 1 MB": _of("array", lambda: {"shape": [1_000_000, 1, 1, 1]}),
    "arrays of 10 MB": _of("array", lambda: {"shape": [9_900_000]}),
    "many thin arrays": _of("array", lambda: {"shape": [900, 0], "copies": 20_000}),
    "ten million empty lists": _of("lists", lambda: {"count": 9_900_000}),
    "two million empty lists": _of("lists", lambda: {"count": 2_000_000}),
    "chunks of 500 KB": _of("streamed", lambda: {"shape": [500_000], "count": 20}, "text/event-stream"),
    "bodies of 10 MB that match": _of("checked", lambda: {"rows": [{"a": [1]}] * 700_000}),
    "bodies of 10 MB that do not": _of("checked", lambda: {"rows": [{"a": ["x"]}] * 600_000}),
    "a deploy with numbers for names": Attack(path=DEPLOY, body=lambda: _files(1.0)),
    "a deploy of too many files": Attack(path=DEPLOY, body=lambda: _files(1)),
}


def main() -> None:
    """Run, print, finish."""
    parser = report.arguments("attacks", (__doc__ or "").splitlines()[0])
    parser.add_argument("--attacker", nargs=4, help="(of the benchmark itself)", metavar=("URL", "KEY", "NAME", "S"))
    parser.add_argument("--only", default="", help="attacks whose names contain this")
    options = report.parsed(parser)
    if options.attacker:
        url, key, name, seconds = options.attacker
        asyncio.run(_attack(url, key, name, float(seconds)))
        return
    seconds = 3.0 if options.quick else 15.0
    rows, figures = [], {}
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), "--cpu-slots", "6") as running:
        attacker = _prepared(running)
        for name in ATTACKS:
            if options.only not in name:
                continue
            took, failed, done, peak = asyncio.run(_beside(running, attacker, name, seconds))
            p50, p99 = report.percentile(took, 50), report.percentile(took, 99)
            rows.append((name, p50, p99, max(took), failed, done, peak))
            print(f"{name}: p99 {p99:.1f} ms, gateway {peak:.0f} MB", flush=True)
            figures[f"p99_ms {name}"] = p99
            figures[f"peak_mb {name}"] = peak
    columns = ("attack", "p50 ms", "p99 ms", "worst ms", "failed", "attacks by status", "gateway's peak MB")
    report.table("a quiet tenant beside an attacker", columns, rows)
    report.finish("attacks", figures)


def _prepared(running: Platform) -> str:
    """Deploy, and start a container of each function; the attacker's key."""
    running.deploy("benchmarks/functions/app.py")
    running.call("bench.echo", text="x")
    running.cli("tenant", "create", "attacker", "--tier", "free")
    key = running.cli("key", "create", "--tenant", "attacker", "--scopes", "admin").stdout.strip()
    running.cli("deploy", "benchmarks/functions/hostile.py", key=key)
    with running.as_holder_of(key) as client:
        for function, arguments in (
            ("array", {"shape": [1]}), ("lists", {"count": 1}), ("streamed", {"shape": [1], "count": 1}),
            ("checked", {"rows": []}),
        ):  # fmt: skip
            answer = client.post(HOSTILE.format(function), json={"input": arguments})
            assert answer.status_code == httpx.codes.OK, answer.text
    return key


async def _beside(running: Platform, key: str, name: str, seconds: float) -> tuple[list[float], int, str, float]:
    gateway = running.pids["gateway"]
    forget_peak(gateway)
    command = [sys.executable, "-m", "benchmarks.attacks", "--attacker", running.url, key, name, str(seconds)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    await asyncio.sleep(SETTLE_S)
    took, failed = await _quiet(running, seconds - SETTLE_S / 2)
    done = (await process.communicate())[0].decode().strip()
    return took, failed, done, peak_mb(gateway)


async def _quiet(running: Platform, seconds: float) -> tuple[list[float], int]:
    """The milliseconds of the quiet tenant's calls, and how many failed."""
    chance, took, failed = random.Random(1), [], 0
    idle: list[Line] = []

    async def call(due: float) -> None:
        nonlocal failed
        line = idle.pop() if idle else Line(running.url, running.key)
        answer = await line.post(ECHO, b'{"input":{"text":"x"}}', PATIENCE_S)
        took.append((time.monotonic() - due) * 1000)
        failed += answer is None or answer.status != httpx.codes.OK
        idle.append(line)

    due = time.monotonic()
    ends = due + seconds
    async with asyncio.TaskGroup() as group:
        while due < ends:
            due += chance.expovariate(RATE)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            group.create_task(call(due))
    for line in idle:
        line.close()
    return took, failed


async def _attack(url: str, key: str, name: str, seconds: float) -> None:
    attack = ATTACKS[name]
    counts: dict[int, int] = {}
    if attack is None:
        return
    body, ends = json.dumps(attack.body()).encode(), time.monotonic() + seconds + SETTLE_S

    async def one() -> None:
        async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Accept": attack.accept}
            while time.monotonic() < ends:
                try:
                    async with client.stream("POST", url + attack.path, content=body, headers=headers) as answer:
                        async for _ in answer.aiter_raw():
                            pass
                        counts[answer.status_code] = counts.get(answer.status_code, 0) + 1
                        if answer.status_code in (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE):
                            await asyncio.sleep(0.1)
                except httpx.HTTPError:
                    counts[0] = counts.get(0, 0) + 1

    async with asyncio.TaskGroup() as group:
        for _ in range(ATTACKERS):
            group.create_task(one())
    print(", ".join(f"{count} x {status}" for status, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
