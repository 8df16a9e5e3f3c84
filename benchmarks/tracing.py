"""What tracing costs on the whole path: two platforms on one machine, one that traces nothing and one that traces.

Both have the same functions and a collector; loads go to one after the other, so that a drift of the machine hits both.
Figures are of processor time, of all parts that a call passes through and of the duties that export:

    sampled_more     of a call where one of a thousand is sampled, over one where none is: 0.01 is one in a hundred
    all_more         the same where every call is kept
    ..._error        the standard error of that median
    ..._gateway_more of the gateways alone
    exported         traces that the collector had of the second one

    ..._us           in microseconds of a processor a call, the median of what turns differ by

    --rate           calls a second (400): less where a machine has no room for so many. At fewer a call costs more of
                     itself, and a request of the export has fewer
    --only           one of the two

With --quick there are few turns, which say whether it runs.
"""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from benchmarks import report
from benchmarks.http_load import Caller
from benchmarks.overhead import BODY, ERROR_OF_SPREAD, SLOTS, answers_by_status
from tests.system.support.platform import Platform, platform
from tests.system.support.processes import descendants
from tests.system.support.trace_collector import trace_collector

REF = "bench.echo"
RATE = 400.0
"""Calls a second."""
TURN_S = 4.0
ASIDE = ("controller", "dashboard")
"""Processes that calls do not pass through."""
RATIOS = {"sampled": "0.001", "all": "1"}
"""Name -> the part of calls that is sampled."""
Costs = Mapping[str, float]


def main() -> None:
    """Run, print, finish."""
    parser = report.arguments("tracing", __doc__ or "")
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--only", choices=tuple(RATIOS))
    options = report.parsed(parser)
    pairs = 3 if options.quick else 15
    figures: dict[str, float] = {"rate": options.rate}
    for name, ratio in RATIOS.items():
        if options.only in (None, name):
            figures |= compared(name, ratio, pairs, options.rate)
    report.finish("tracing", figures)


def compared(name: str, ratio: str, pairs: int, rate: float) -> dict[str, float]:
    """What a call costs more where so many are sampled."""
    with tempfile.TemporaryDirectory() as folder, trace_collector() as collector, ExitStack() as stack:
        to = ("--otlp-endpoint", collector.url)
        found = []
        for kind, part in (("off", "0"), ("on", ratio)):
            (own := Path(folder) / kind).mkdir()
            found.append(stack.enter_context(platform(own, *SLOTS, *to, "--trace-ratio", part)))
        off, on = found
        for each in (off, on):
            each.deploy("benchmarks/functions/app.py")
            each.output(REF, text="hello")
            turn(each, rate)
        turns: list[tuple[Costs, Costs]] = []
        more: list[float] = []
        gateway: list[float] = []
        for number in range(pairs):
            order = (off, on) if number % 2 else (on, off)
            costs = {each is on: turn(each, rate) for each in order}
            turns.append((costs[False], costs[True]))
            more.append(sum(costs[True].values()) / sum(costs[False].values()) - 1.0)
            gateway.append(costs[True]["gateway"] / costs[False]["gateway"] - 1.0)
        exported = len({span.trace_id for span in collector.spans})
    rows = [
        (part, *(report.median([each[which].get(part, 0.0) for each in turns]) for which in (0, 1)))
        for part in sorted(turns[0][1])
    ]
    report.table(f"µs of a processor a call, of {ratio} sampled", ("process", "off", "on"), rows)
    middle = report.median(more)
    spread = report.median([abs(each - middle) for each in more])
    return {
        f"{name}_more": middle,
        f"{name}_error": ERROR_OF_SPREAD * spread / math.sqrt(pairs),
        f"{name}_gateway_more": report.median(gateway),
        f"{name}_us": report.median([sum(on.values()) - sum(off.values()) for off, on in turns]),
        f"{name}_exported": float(exported),
    }


def turn(running: Platform, rate: float) -> Costs:
    """Microseconds of processor time per call, by part, of one load."""
    calls, before = counted(running), used(running)
    failed = asyncio.run(sent(running, rate))
    time.sleep(0.5)  # what is sent to the duties each other second, and exported, belongs to it
    calls, after = counted(running) - calls, used(running)
    if failed or not calls:
        sys.exit(f"{failed} errors in a turn of {calls} calls: the machine is too busy to measure on")
    return {part: 1e6 * (seconds - before.get(part, 0.0)) / calls for part, seconds in after.items()}


async def sent(running: Platform, rate: float) -> int:
    """Calls for a turn, at this rate whatever comes back; how many failed.

    A full load would tell of the machine: the export takes a core from the load, so that fewer calls come at once, and
    each costs more.
    """
    caller, loop = Caller(running.url, REF, running.key), asyncio.get_running_loop()
    body, began_at = BODY.encode(), loop.time()
    async with asyncio.TaskGroup() as group:
        calls = []
        for number in range(int(rate * TURN_S)):
            await asyncio.sleep(max(0.0, began_at + number / rate - loop.time()))
            calls.append(group.create_task(caller.post(body)))
    caller.close()
    return sum(call.result().status != 200 for call in calls)


def counted(running: Platform) -> int:
    """Calls that ended well."""
    return answers_by_status("".join(running.metrics()))["200"]


def used(running: Platform) -> dict[str, float]:
    """Seconds of processor time so far, by process; what runs in sandboxes is one part."""
    found = {name: report.exact_cpu_seconds(pid) for name, pid in running.pids.items() if name not in ASIDE} | {
        "guests": 0.0
    }
    for pid in descendants(running.pids["agent"]):
        try:
            found["guests"] += report.exact_cpu_seconds(pid)
        except OSError:
            continue  # it has just ended
    return found


if __name__ == "__main__":
    main()
