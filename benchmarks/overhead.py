"""What the whole path costs over one bare Starlette/uvicorn process that echoes the same JSON.

Authentication, schema check, limits, scheduler, bus, agent, sandboxed guest, receipt and usage event are all on: the
calling tenant has a limit on its requests, their cost and their concurrency, none of which it reaches. Functions are
async, plain and batched ones. Runs alternate between the two servers on the same machine, and the figures are medians;
the ratio is what to compare, since the machine's speed drifts.

    budget_us_per_call   CPU of all parts that a call costs more while its tenant has a budget: the median of turns
                         with one, each less the mean of the turns before and after it without
    budget_us_error      the standard error of that median
    budget_us_same       the median of what a turn without costs more than the one before without: nothing, but for
                         the machine
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
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
TURN_S = 2.0
SETTLED_S = 0.5
"""From when calls are let in to a turn's begin."""
SET_S = 2.5
"""More than setting a budget takes, half the turns' time for it: its home waits for the ledger."""
ERROR_OF_SPREAD = 1.2533 * 1.4826
"""Of a median of normal values, over their median distance from it."""
ANSWERED = 'pilotlight_http_requests_total{route="/v1/functions/{ref}/calls",'
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
            figures |= _budget(running, 4 * runs)
        finally:
            bare.terminate()
            bare.wait(10)
    report.finish("overhead", figures)


def _budget(running: Platform, pairs: int) -> dict[str, float]:
    """What a budget that nobody reaches costs: it comes and goes while one load goes on, so that a drift cancels."""
    turns = 2 * pairs + 1
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(_send, running, FUNCTIONS["whole"], 64, turns * (SETTLED_S + TURN_S + SET_S))
        costs = [_turn(running, has_budget=bool(number % 2)) for number in range(turns)]
        if load.done():
            sys.exit("the load ended before the last turn: the machine is too busy to measure on")
        load.result()
    without, having = costs[::2], costs[1::2]
    more = {
        part: [having[n][part] - (without[n][part] + without[n + 1][part]) / 2 for n in range(pairs)]
        for part in costs[0]
    }  # fmt: skip
    total = [sum(each) for each in zip(*more.values(), strict=True)]
    same = [sum(after.values()) - sum(before.values()) for before, after in pairwise(without)]
    middle = report.median(total)
    spread = report.median([abs(each - middle) for each in total])
    rows = [(part, report.median([cost[part] for cost in without]), report.median(each)) for part, each in more.items()]
    report.table("CPU per call, and more with a budget", ("process", "µs", "more"), rows)
    return {
        "budget_us_per_call": middle,
        "budget_us_error": ERROR_OF_SPREAD * spread / math.sqrt(pairs),
        "budget_us_same": report.median(same),
    } | {f"budget_us_{part}": report.median(each) for part, each in more.items()}


def _turn(running: Platform, *, has_budget: bool) -> dict[str, float]:
    """Microseconds of CPU per call, by process, once a budget is there, or is gone."""
    path = f"/v1/tenants/{TENANT}/budgets"
    if has_budget:
        running.http.put(path, json={"usd": "1000000", "period": "month"}).raise_for_status()
    elif running.http.get(path).raise_for_status().json()["budgets"]:
        running.http.delete(f"{path}/month").raise_for_status()
    ref = FUNCTIONS["whole"]
    wait_until(lambda: running.call(ref, text="hello").status_code == 200, "the ledger is heard, and calls are let in")
    time.sleep(SETTLED_S)
    calls, before = answers_by_status("".join(running.metrics())), _cpu(running)
    time.sleep(TURN_S)
    calls, after = answers_by_status("".join(running.metrics())) - calls, _cpu(running)
    if set(calls) != {"200"}:
        sys.exit(f"in a turn with{'' if has_budget else 'out'} a budget calls were answered so: {calls}")
    return {part: 1e6 * (used - before.get(part, 0.0)) / calls["200"] for part, used in after.items()}


def answers_by_status(exposition: str) -> Counter[str]:
    """How many calls gateways have answered how, by what Prometheus reads of them."""
    found = Counter[str]()
    for line in exposition.splitlines():
        if line.startswith(ANSWERED):
            found[line.split('"')[-2]] += int(float(line.rsplit(" ", 1)[1]))
    return found


def _send(running: Platform, ref: str, connections: int, seconds: float) -> wrk.Load:
    headers = {**JSON, "Authorization": f"Bearer {running.key}"}
    return wrk.post(
        f"{running.url}/v1/functions/{ref}/calls", BODY, headers, connections=connections, seconds=seconds
    )  # fmt: skip


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
