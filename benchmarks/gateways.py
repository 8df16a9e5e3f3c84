"""What a call costs with one, two and four gateways: CPU of all parts together, calls spread evenly over the gateways.

A function has one home, so with N gateways all but one call in N cross from origin to home and back.
`same_total_ratio_N` is of the same 64 callers in all, spread over more gateways: there each gateway also does less
per turn of its event loop, which costs a call more than crossing does. `same_load_ratio_N` stands beside it, where
each gateway has 16 callers, as when a gateway is added because the others are full. Three platforms run side by side
and take turns, so that the machine's drift falls on all alike. Two cores cannot show requests per second, hence CPU.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from benchmarks import report, wrk
from tests.system.support.platform import Platform, platform
from tests.system.support.processes import descendants

COUNTS = (1, 2, 4)
EACH = 16
"""Callers of one gateway, where all gateways have the same load."""
ALL = 64
"""Callers in all, where they are spread over the gateways."""
BODY = '{"input": {"text": "hello"}}'


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("gateways", __doc__ or ""))
    rounds, seconds = (1, 2.0) if options.quick else (6, 5.0)
    same_load, same_total = Costs(), Costs()
    with ExitStack() as stack:
        platforms = {count: stack.enter_context(_platform(stack, count)) for count in COUNTS}
        for running in platforms.values():
            running.deploy("benchmarks/functions/app.py")
            running.output("bench.echo", text="hello")
        for _ in range(rounds):
            for count, running in platforms.items():
                same_load.measure(running, count, EACH, seconds)
                same_total.measure(running, count, ALL // count, seconds)
    figures = _figures("same_total_", same_total, f"CPU per call in µs, {ALL} callers in all")
    figures |= _figures("same_load_", same_load, f"CPU per call in µs, {EACH} callers of each gateway")
    report.finish("gateways", figures)


class Costs:
    """CPU seconds by part, and the calls that they were for, by number of gateways."""

    def __init__(self) -> None:
        self.cpu: defaultdict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.calls: defaultdict[int, float] = defaultdict(float)

    def measure(self, running: Platform, count: int, each: int, seconds: float) -> None:
        """Load each of `count` gateways with `each` callers for so long."""
        before = _cpu(running)
        self.calls[count] += _load(running, each, seconds)
        for part, used in _cpu(running).items():
            self.cpu[count][part] += used - before.get(part, 0.0)

    def per_call(self) -> dict[int, dict[str, float]]:
        """Microseconds by part."""
        return {
            count: {part: 1e6 * seconds / self.calls[count] for part, seconds in parts.items()}
            for count, parts in self.cpu.items()
        }


def _platform(stack: ExitStack, count: int) -> AbstractContextManager[Platform]:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    return platform(Path(folder), "--extra-gateways", str(count - 1), "--blanks", "0", "--cpu-slots", "1")


def _load(running: Platform, each: int, seconds: float) -> float:
    """Calls that were answered, through all gateways at once."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {running.key}"}
    urls = [f"{url}/v1/functions/bench.echo/calls" for url in running.urls]
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


def _figures(prefix: str, costs: Costs, title: str) -> dict[str, float]:
    per_call = costs.per_call()
    parts = sorted(per_call[1], key=lambda part: -per_call[1][part])
    totals = {count: sum(values.values()) for count, values in per_call.items()}
    rows = [(part, *(per_call[count].get(part, 0.0) for count in COUNTS)) for part in parts]
    rows.append(("all", *(totals[count] for count in COUNTS)))
    report.table(title, ("part", *(f"{count} gateways" for count in COUNTS)), rows)
    figures = {f"{prefix}cpu_us_per_call_{count}": totals[count] for count in COUNTS}
    return figures | {f"{prefix}ratio_{count}": totals[count] / totals[1] for count in COUNTS[1:]}


if __name__ == "__main__":
    main()
