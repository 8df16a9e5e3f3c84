"""What a call costs with one, two and four gateways: CPU of all parts together, calls spread evenly over the gateways.

A function has one home, so with N gateways all but one call in N cross from origin to home and back.
`same_total_ratio_N` is of the same 64 callers in all, spread over more gateways: there each gateway also does less
per turn of its event loop, which costs a call more than crossing does. `same_load_ratio_N` stands beside it, where
each gateway has 16 callers, as when a gateway is added because the others are full. `at_home_ratio_N` is of calls that
come to their function's home, as answers name it: N functions, each at a home of its own, held against the same calls
of the same functions at one gateway.

Three platforms run side by side and take turns, so that the machine's drift falls on all alike. Two cores cannot show
requests per second, hence CPU.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from benchmarks import report, wrk
from benchmarks.functions.homes import MANY
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
    at_home, at_one = Costs(), Costs()
    with ExitStack() as stack:
        platforms = {count: stack.enter_context(_platform(stack, count)) for count in COUNTS}
        for running in platforms.values():
            running.deploy("benchmarks/functions/app.py")
            running.output("bench.echo", text="hello")
            running.deploy("benchmarks/functions/homes.py")
        homes = {count: _homes(running, count) for count, running in platforms.items() if count > 1}
        for ref in {ref for found in homes.values() for ref in found.values()}:
            platforms[1].output(ref, text="hello")
        for _ in range(rounds):
            for count, running in platforms.items():
                echo = dict.fromkeys(running.urls, "bench.echo")
                same_load.measure(running, count, list(echo.items()), EACH, seconds)
                same_total.measure(running, count, list(echo.items()), ALL // count, seconds)
            for count, found in homes.items():
                one = platforms[1]
                at_one.measure(one, count, [(one.url, ref) for ref in found.values()], ALL // count, seconds)
                at_home.measure(platforms[count], count, list(found.items()), ALL // count, seconds)
    figures = _figures("same_total_", same_total, f"CPU per call in µs, {ALL} callers in all")
    figures |= _figures("same_load_", same_load, f"CPU per call in µs, {EACH} callers of each gateway")
    home, one_alone = at_home.totals(), at_one.totals()
    rows = [(f"{count} gateways, {count} functions", one_alone[count], home[count]) for count in home]
    report.table("CPU per call in µs, at home", ("what", "one gateway", "several"), rows)
    figures |= {f"at_home_ratio_{count}": home[count] / one_alone[count] for count in home}
    report.finish("gateways", figures)


def _homes(running: Platform, count: int) -> dict[str, str]:
    """A function for each of `count` gateways whose home it is, by the gateway's address."""
    found: dict[str, str] = {}
    for number in range(MANY):
        ref = f"homes.echo_{number}"
        answer = running.call(ref, text="hello")
        answer.raise_for_status()
        found.setdefault(answer.headers.get("pilotlight-home", running.url), ref)
        if len(found) == count:
            return found
    raise SystemExit(f"{MANY} functions have their homes at {len(found)} of {count} gateways: {sorted(found)}")


class Costs:
    """CPU seconds by part, and the calls that they were for, by number of gateways."""

    def __init__(self) -> None:
        self.cpu: defaultdict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.calls: defaultdict[int, float] = defaultdict(float)

    def measure(self, running: Platform, count: int, targets: list[tuple[str, str]], each: int, seconds: float) -> None:
        """Load each of these addresses and functions with `each` callers for so long; it counts for `count`."""
        before = _cpu(running)
        self.calls[count] += _load(running, targets, each, seconds)
        for process, used in _cpu(running).items():  # what a process that has ended used meanwhile is not known
            self.cpu[count][process[0]] += used - before.get(process, 0.0)

    def totals(self) -> dict[int, float]:
        """Microseconds of all parts together."""
        return {count: sum(parts.values()) for count, parts in self.per_call().items()}

    def per_call(self) -> dict[int, dict[str, float]]:
        """Microseconds by part."""
        return {
            count: {part: 1e6 * seconds / self.calls[count] for part, seconds in parts.items()}
            for count, parts in self.cpu.items()
        }


def _platform(stack: ExitStack, count: int) -> AbstractContextManager[Platform]:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    return platform(Path(folder), "--extra-gateways", str(count - 1), "--blanks", "0", "--cpu-slots", str(MANY + 1))


def _load(running: Platform, targets: list[tuple[str, str]], each: int, seconds: float) -> float:
    """Calls that were answered, of all functions at once."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {running.key}"}
    urls = [f"{url}/v1/functions/{ref}/calls" for url, ref in targets]
    with ThreadPoolExecutor(len(urls)) as pool:
        start = time.monotonic()
        loads = list(pool.map(lambda url: wrk.post(url, BODY, headers, connections=each, seconds=seconds), urls))
        took = time.monotonic() - start
    if errors := sum(load.errors for load in loads):
        raise SystemExit(f"{len(urls)} at a time: {errors} errors")
    return sum(load.rps for load in loads) * min(took, seconds)


def _cpu(running: Platform) -> dict[tuple[str, int], float]:
    """Seconds that each process has used so far, by part and pid; all guests are one part."""
    pids = running.pids
    used = {
        ("gateways" if name.startswith("gateway") else name, pid): report.cpu_seconds(pid) for name, pid in pids.items()
    }
    for pid in descendants(pids["agent"]):
        try:
            used["guests", pid] = report.cpu_seconds(pid)
        except OSError:
            continue  # it has just ended
    return used


def _figures(prefix: str, costs: Costs, title: str) -> dict[str, float]:
    per_call = costs.per_call()
    parts = sorted(per_call[1], key=lambda part: -per_call[1][part])
    totals = costs.totals()
    rows = [(part, *(per_call[count].get(part, 0.0) for count in COUNTS)) for part in parts]
    rows.append(("all", *(totals[count] for count in COUNTS)))
    report.table(title, ("part", *(f"{count} gateways" for count in COUNTS)), rows)
    figures = {f"{prefix}cpu_us_per_call_{count}": totals[count] for count in COUNTS}
    return figures | {f"{prefix}ratio_{count}": totals[count] / totals[1] for count in COUNTS[1:]}


if __name__ == "__main__":
    main()
