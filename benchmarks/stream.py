"""Chunks per second through the gateway, on one stream and on 64 at a time, and CPU per chunk."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks import report
from tests.system.support.platform import Platform, platform


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("stream", __doc__ or ""))
    runs, chunks = (1, 2_000) if options.quick else (5, 20_000)
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), "--blanks", "1") as running:
        running.deploy("benchmarks/functions/app.py")
        asyncio.run(_streams(running, 1, 10))
        one = [asyncio.run(_measure(running, 1, chunks)) for _ in range(runs)]
        many = [asyncio.run(_measure(running, 64, chunks // 32)) for _ in range(runs)]
    rows, rates = [], []
    for name, measured in (("1", one), ("64", many)):
        rate = report.median([rate for rate, _ in measured])
        cpu = {part: report.median([used[part] for _, used in measured]) for part in measured[0][1]}
        rates.append(rate)
        rows.append((name, rate, *cpu.values()))
    report.table("streams", ("streams", "chunks/s", *(f"{part} µs/chunk" for part in one[0][1])), rows)
    report.finish("stream", {"chunks_per_s_1": rates[0], "chunks_per_s_64": rates[1]})


async def _measure(running: Platform, streams: int, chunks: int) -> tuple[float, dict[str, float]]:
    pids = {name: pid for name, pid in running.pids.items() if "controller" not in name}
    before = {name: report.cpu_seconds(pid) for name, pid in pids.items()}
    start = time.perf_counter()
    await _streams(running, streams, chunks)
    took = time.perf_counter() - start
    total = streams * chunks
    cpu = {name: 1e6 * (report.cpu_seconds(pid) - before[name]) / total for name, pid in pids.items()}
    return total / took, cpu


async def _streams(running: Platform, streams: int, chunks: int) -> None:
    headers = {"Authorization": f"Bearer {running.key}", "Accept": "text/event-stream"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=120.0) as http:
        await asyncio.gather(*(_read(http, chunks) for _ in range(streams)))


async def _read(http: httpx.AsyncClient, chunks: int) -> None:
    body = {"input": {"chunks": chunks}}
    seen = 0
    async with http.stream("POST", "/v1/functions/bench.count/calls", json=body) as answer:
        async for piece in answer.aiter_bytes():
            seen += piece.count(b"event: chunk")
    if seen < chunks * 0.99:  # an event cut in two by a read is not counted
        raise SystemExit(f"{seen} of {chunks} chunks arrived")


if __name__ == "__main__":
    main()
