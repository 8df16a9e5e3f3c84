"""What a call costs with one, two and four gateways: CPU of all parts together, calls spread evenly over the gateways.

A function has one home, so with N gateways all but one call in N cross from origin to home and back. Three platforms
run side by side and take turns, so that the machine's drift falls on all alike. Two cores cannot show requests per
second, hence CPU.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from benchmarks import report, wrk
from tests.system.platform import Platform, platform
from tests.system.processes import descendants

COUNTS = (1, 2, 4)
CONNECTIONS = 64
BODY = '{"input": {"text": "hello"}}'


def main() -> None:
    """Run, print, finish."""
    options = report.arguments("gateways", __doc__ or "").parse_args()
    rounds, seconds = (1, 2.0) if options.quick else (6, 5.0)
    cpu: defaultdict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    calls: defaultdict[int, float] = defaultdict(float)
    with ExitStack() as stack:
        platforms = {count: stack.enter_context(_platform(stack, count)) for count in COUNTS}
        for running in platforms.values():
            running.deploy("benchmarks/functions/app.py")
            running.output("bench.echo", text="hello")
        for _ in range(rounds):
            for count, running in platforms.items():
                before = _cpu(running)
                calls[count] += _load(running, seconds)
                for part, used in _cpu(running).items():
                    cpu[count][part] += used - before.get(part, 0.0)
    _tell(cpu, calls)


def _platform(stack: ExitStack, count: int) -> AbstractContextManager[Platform]:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    return platform(Path(folder), "--extra-gateways", str(count - 1), "--blanks", "0", "--cpu-slots", "1")


def _load(running: Platform, seconds: float) -> float:
    """Calls that were answered, through all gateways at once."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {running.key}"}
    urls = [f"{url}/v1/functions/bench.echo/calls" for url in running.urls]
    each = CONNECTIONS // len(urls)
    with ThreadPoolExecutor(len(urls)) as pool:
        start = time.monotonic()
        loads = list(pool.map(lambda url: wrk.post(url, BODY, headers, connections=each, seconds=seconds), urls))
        took = time.monotonic() - start
    if errors := sum(load.errors for load in loads):
        raise SystemExit(f"{len(urls)} gateways: {errors} errors")
    return sum(load.rps for load in loads) * min(took, seconds)


def _cpu(running: Platform) -> dict[str, float]:
    """Seconds that each part has used so far; the guests are one part."""
    pids = running.pids
    used: defaultdict[str, float] = defaultdict(float)
    for name, pid in pids.items():
        used["gateways" if name.startswith("gateway") else name] += report.cpu_seconds(pid)
    for pid in descendants(pids["agent"]):
        try:
            used["guests"] += report.cpu_seconds(pid)
        except OSError:
            continue  # it has just ended
    return dict(used)


def _tell(cpu: dict[int, dict[str, float]], calls: dict[int, float]) -> None:
    per_call = {count: {part: 1e6 * s / calls[count] for part, s in parts.items()} for count, parts in cpu.items()}
    parts = sorted(per_call[1], key=lambda part: -per_call[1][part])
    totals = {count: sum(values.values()) for count, values in per_call.items()}
    rows = [(part, *(per_call[count].get(part, 0.0) for count in COUNTS)) for part in parts]
    rows.append(("all", *(totals[count] for count in COUNTS)))
    report.table("CPU per call in µs", ("part", *(f"{count} gateways" for count in COUNTS)), rows)
    figures = {f"cpu_us_per_call_{count}": totals[count] for count in COUNTS}
    report.finish("gateways", figures | {f"ratio_{count}": totals[count] / totals[1] for count in COUNTS[1:]})


if __name__ == "__main__":
    main()
