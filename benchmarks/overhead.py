"""What the whole path costs over one bare Starlette/uvicorn process that echoes the same JSON.

Authentication, schema check, limits, scheduler, bus, agent, sandboxed guest, receipt and usage event are all on: the
calling tenant has a limit on its requests, their cost and their concurrency, none of which it reaches. Functions are
async, plain and batched ones. Runs alternate between the two servers on the same machine, and the figures are medians;
the ratio is what to compare, since the machine's speed drifts.

    budget_us_per_call   CPU that a call costs more while its tenant has a budget, in turns with calls without one
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks import report, wrk
from pilotlight_supervisor.free_ports import free_port
from tests.system.support.platform import Platform, platform
from tests.system.support.processes import descendants
from tests.waiting import wait_until

BODY = '{"input": {"text": "hello"}}'
JSON = {"Content-Type": "application/json"}
SLOTS = ("--blanks", "1", "--cpu-slots", "4")
"""Room for one container of each function, and one more."""
TENANT = "default"
LIMITS = ("requests_per_s=50000", "burst=50000", "concurrency=10000", "cost_per_s=100000000")
"""Each is checked for every call, and is far off."""
FUNCTIONS = {"whole": "bench.echo", "sync": "bench.echo_sync", "batched": "bench.Batched"}
"""Path -> function."""


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("overhead", __doc__ or ""))
    runs, seconds = (1, 2.0) if options.quick else (5, 6.0)
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), *SLOTS) as running:
        running.deploy("benchmarks/functions/app.py")
        running.cli("quota", "set", TENANT, *LIMITS)
        for ref in FUNCTIONS.values():
            running.output(ref, text="hello")
        port = free_port()
        bare = subprocess.Popen([sys.executable, "-m", "benchmarks.bare", "--port", str(port)])
        try:
            wait_until(lambda: _answers(port), "the bare server is up")
            figures = _measure(running, f"http://127.0.0.1:{port}/echo", runs, seconds)
            figures |= _budget(running, 2 * runs, seconds)
        finally:
            bare.terminate()
            bare.wait(10)
    report.finish("overhead", figures)


def _budget(running: Platform, runs: int, seconds: float) -> dict[str, float]:
    """What a budget that nobody reaches costs."""
    cpu: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(runs):
        for has_budget, used in cpu.items():
            words = ("set", TENANT, "1000000") if has_budget else ("remove", TENANT, "month")
            if has_budget or running.cli("billing", "budget", "list", TENANT, "--json").stdout.count('"month"'):
                running.cli("billing", "budget", *words)
            wait_until(lambda: _is_let_in(running), "calls are let in")
            before, start = sum(_cpu(running).values()), time.monotonic()
            load = _load(running, FUNCTIONS["whole"], 64, seconds)
            calls = load.rps * (time.monotonic() - start)
            used.append(1e6 * (sum(_cpu(running).values()) - before) / calls)
    rows = [("with a budget" if has_budget else "without", report.median(used)) for has_budget, used in cpu.items()]
    report.table("CPU per call", ("", "µs"), rows)
    return {"budget_us_per_call": report.median([y - x for x, y in zip(cpu[False], cpu[True], strict=True)])}


def _is_let_in(running: Platform) -> bool:
    url, headers = f"{running.url}/v1/functions/{FUNCTIONS['whole']}/calls", {"Authorization": f"Bearer {running.key}"}
    return httpx.post(url, content=BODY, headers=headers | JSON).status_code == 200


def _load(running: Platform, ref: str, connections: int, seconds: float) -> wrk.Load:
    headers = {**JSON, "Authorization": f"Bearer {running.key}"}
    url = f"{running.url}/v1/functions/{ref}/calls"
    load = wrk.post(url, BODY, headers, connections=connections, seconds=seconds)
    if load.errors:
        sys.exit(f"{ref} at {connections} connections: {load.errors} errors")
    return load


def _measure(running: Platform, bare: str, runs: int, seconds: float) -> dict[str, float]:
    headers = {**JSON, "Authorization": f"Bearer {running.key}"}
    paths = {"bare": bare}
    paths |= {name: f"{running.url}/v1/functions/{ref}/calls" for name, ref in FUNCTIONS.items()}
    loads: dict[str, list[wrk.Load]] = {}
    cpu: dict[str, float] = {}
    calls = 0.0
    for _ in range(runs):
        for connections in (1, 64):
            for name, url in paths.items():
                before = _cpu(running)
                start = time.monotonic()
                load = wrk.post(url, BODY, headers, connections=connections, seconds=seconds)
                took = time.monotonic() - start
                if load.errors:
                    sys.exit(f"{name} at {connections} connections: {load.errors} errors")
                loads.setdefault(f"{name}_{connections}", []).append(load)
                if name == "whole" and connections == 64:
                    calls += load.rps * took
                    for part, used in _cpu(running).items():
                        cpu[part] = cpu.get(part, 0.0) + used - before[part]
    return _tell(loads, {part: 1e6 * used / calls for part, used in cpu.items()})


def _cpu(running: Platform) -> dict[str, float]:
    """Seconds that every process has used so far that a call passes through; what runs in sandboxes is one part."""
    used = {name: report.cpu_seconds(pid) for name, pid in running.pids.items() if "controller" not in name}
    return used | {"guests": sum(_cpu_if_there(pid) for pid in descendants(running.pids["agent"]))}


def _cpu_if_there(pid: int) -> float:
    try:
        return report.cpu_seconds(pid)
    except OSError:
        return 0.0  # it has just ended


def _tell(loads: dict[str, list[wrk.Load]], cpu: dict[str, float]) -> dict[str, float]:
    rows = []
    for name, several in loads.items():
        rps, p50 = report.median([x.rps for x in several]), report.median([x.p50_ms for x in several])
        rows.append((name, rps, p50, report.median([x.p99_ms for x in several])))
    report.table("requests per second and latency", ("path_connections", "rps", "p50 ms", "p99 ms"), rows)
    report.table("CPU per call at 64 connections", ("process", "µs"), list(cpu.items()))
    middle = {name: (rps, p50) for name, rps, p50, _ in rows}
    return {
        "ratio_64": middle["whole_64"][0] / middle["bare_64"][0],
        "rps_64": middle["whole_64"][0],
        "added_p50_ms_1": middle["whole_1"][1] - middle["bare_1"][1],
        "sync_ratio_64": middle["sync_64"][0] / middle["bare_64"][0],
        "batched_ratio_64": middle["batched_64"][0] / middle["bare_64"][0],
        "cpu_us_per_call": sum(cpu.values()),
    } | {f"cpu_us_{part}": used for part, used in cpu.items()}


def _answers(port: int) -> bool:
    try:
        return httpx.post(f"http://127.0.0.1:{port}/echo", content=BODY).status_code == 200
    except httpx.TransportError:
        return False


if __name__ == "__main__":
    main()
