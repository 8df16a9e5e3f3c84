"""Chunks per second through the gateway, on one stream and on 64 at a time, and CPU per chunk.

`count` is a plain generator, whose 64 calls run in threads; `tick` an asynchronous one that gives way to its loop after
each chunk, as an engine does whose sequences all have news at each step.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks import report
from benchmarks.agent_path import cpu_ns
from tests.system.support.platform import Platform, platform
from tests.system.support.processes import descendants

RUNS = (("1", "count", 1), ("64", "count", 64), ("64 of a loop", "tick", 64))
"""What a row is called, its function, and streams at a time."""


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("stream", __doc__ or ""))
    runs, chunks = (1, 4_000) if options.quick else (5, 20_000)
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), "--blanks", "1") as running:
        running.deploy("benchmarks/functions/app.py")
        for function in ("count", "tick"):
            asyncio.run(_streams(running, function, 1, 10))
        measured = {
            name: [
                asyncio.run(_measure(running, function, streams, chunks if streams == 1 else chunks // 16))
                for _ in range(runs)
            ]
            for name, function, streams in RUNS
        }
    rows, rates = [], {}
    for name, found in measured.items():
        rates[name] = report.median([rate for rate, _ in found])
        cpu = {part: report.median([used[part] for _, used in found]) for part in found[0][1]}
        rows.append((name, rates[name], *cpu.values(), sum(cpu.values())))
    parts = measured["1"][0][1]
    report.table("streams", ("streams", "chunks/s", *(f"{part} µs/chunk" for part in (*parts, "all"))), rows)
    report.finish(
        "stream",
        {
            "chunks_per_s_1": rates["1"],
            "chunks_per_s_64": rates["64"],
            "loop_chunks_per_s_64": rates["64 of a loop"],
            "platform_us_per_chunk_64": _platform(measured["64"]),
            "loop_platform_us_per_chunk_64": _platform(measured["64 of a loop"]),
        },
    )


def _platform(found: list[tuple[float, dict[str, float]]]) -> float:
    """The platform's own share of a chunk: gateway and agent."""
    return sum(report.median([used[part] for _, used in found]) for part in ("gateway", "agent"))


async def _measure(running: Platform, function: str, streams: int, chunks: int) -> tuple[float, dict[str, float]]:
    pids: dict[str, tuple[int, ...]] = {name: (pid,) for name, pid in running.pids.items() if "controller" not in name}
    pids["guests"] = tuple(descendants(running.pids["agent"]))
    before = {name: cpu_ns(own) for name, own in pids.items()}
    client, start = time.process_time(), time.perf_counter()
    await _streams(running, function, streams, chunks)
    took, client = time.perf_counter() - start, time.process_time() - client
    total = streams * chunks
    cpu = {name: (cpu_ns(own) - before[name]) / 1e3 / total for name, own in pids.items()}
    return total / took, cpu | {"client": 1e6 * client / total}


async def _streams(running: Platform, function: str, streams: int, chunks: int) -> None:
    headers = {"Authorization": f"Bearer {running.key}", "Accept": "text/event-stream"}
    limits = httpx.Limits(max_connections=streams)
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=120.0, limits=limits) as http:
        await asyncio.gather(*(_read(http, function, chunks) for _ in range(streams)))


async def _read(http: httpx.AsyncClient, function: str, chunks: int) -> None:
    body = {"input": {"chunks": chunks}}
    seen = 0
    async with http.stream("POST", f"/v1/functions/bench.{function}/calls", json=body) as answer:
        async for piece in answer.aiter_bytes():
            seen += piece.count(b"event: chunk")
    if seen < chunks * 0.99:  # an event cut in two by a read is not counted
        raise SystemExit(f"{seen} of {chunks} chunks arrived")


if __name__ == "__main__":
    main()
