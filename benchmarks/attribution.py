"""Where the processor's time of a warm call goes: by process, and in each of ours by room and function.

The load is that of `overhead` at 64 connections, for the same tenant with limits. Each process's time is the kernel's
account; py-spy says in which function of ours a thread was that held the interpreter (what a library or the kernel
does there counts as that function's; `main` is the event loop with its reads), so the parts of a process add up to its
whole. Functions of compiled modules have no frames: this reads plain Python.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks import report, wrk
from benchmarks.overhead import BODY, JSON, LIMITS, SLOTS, TENANT
from tests.system.support.platform import Platform, platform
from tests.system.support.processes import descendants

REF = "bench.echo"
RATE = 250
"""Samples a second of each process."""
SHOWN = 12
"""Functions of a process that have a row of their own."""
OURS = "pilotlight"


def main() -> None:
    """Run, print, finish."""
    options = report.arguments("attribution", __doc__ or "").parse_args()
    if shutil.which("py-spy", path=str(Path(sys.executable).parent)) is None:
        sys.exit("py-spy is missing; install it with: pip install py-spy")
    seconds = 3.0 if options.quick else 20.0
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), *SLOTS) as running:
        running.deploy("benchmarks/functions/app.py")
        running.cli("quota", "set", TENANT, *LIMITS)
        running.output(REF, text="hello")
        _load(running, 1.0)
        figures = _measure(running, Path(folder), seconds)
    report.finish("attribution", figures)


def _measure(running: Platform, folder: Path, seconds: float) -> dict[str, float]:
    guest = max(descendants(running.pids["agent"]), key=_cpu)
    pids = {name: pid for name, pid in running.pids.items() if name != "controller"} | {"guest": guest}
    before = {name: _cpu(pid) for name, pid in pids.items()}
    with ThreadPoolExecutor(len(pids) + 1) as pool:
        load = pool.submit(_load, running, seconds)
        samples = {
            name: pool.submit(_samples, pid, seconds, folder / f"{name}.raw")
            for name, pid in pids.items()
            if name != "nats"
        }
        calls = load.result()
        used = {name: 1e6 * (_cpu(pid) - before[name]) / calls for name, pid in pids.items()}
        found = {name: sampled.result() for name, sampled in samples.items()}
    figures = {"calls_per_s": calls / seconds, "cpu_us_per_call": sum(used.values())}
    report.table("CPU per call at 64 connections", ("process", "µs"), [*used.items(), ("all", sum(used.values()))])
    for name, where in found.items():
        parts = shares(where, used[name])
        report.table(f"{name}: {used[name]:.1f} µs a call", ("function", "µs"), rows(parts))
        figures |= {f"cpu_us_{name}_{room}": us for room, us in by_room(parts).items() if us >= 1.0}
    return figures | {f"cpu_us_{name}": us for name, us in used.items()}


def _load(running: Platform, seconds: float) -> float:
    """Calls that were answered."""
    headers = {**JSON, "Authorization": f"Bearer {running.key}"}
    url = f"{running.url}/v1/functions/{REF}/calls"
    start = time.monotonic()
    load = wrk.post(url, BODY, headers, connections=64, seconds=seconds)
    if load.errors:
        sys.exit(f"{load.errors} errors")
    return load.rps * (time.monotonic() - start)


def _cpu(pid: int) -> float:
    try:
        return report.cpu_seconds(pid)
    except OSError:
        return 0.0


def _samples(pid: int, seconds: float, path: Path) -> Counter[str]:
    """How often each function of ours was the innermost one of a running thread, as `module:function`."""
    command = [
        str(Path(sys.executable).with_name("py-spy")), "record", "--pid", str(pid), "--rate", str(RATE), "--gil",
        "--nonblocking", "--duration", str(max(1, int(seconds))), "--format", "raw", "--full-filenames",
        "--output", str(path),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=seconds + 60)
    return innermost(path.read_text().splitlines())


def innermost(lines: Iterable[str]) -> Counter[str]:
    """Sum py-spy's folded stacks (`outer (file:line);inner (file:line) count`) by their innermost frame of ours."""
    found: Counter[str] = Counter()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        ours = [frame for frame in stack.split(";") if f"/{OURS}" in frame]
        found[_name(ours[-1]) if ours else "outside (loop, server, libraries)"] += int(count)
    return found


def _name(frame: str) -> str:
    """`room/module.py:function` of `function (…/pilotlight_gateway/room/module.py:12)`."""
    function, _, place = frame.rpartition(" (")
    path = place.rpartition(":")[0].rpartition(f"/{OURS}")[2].partition("/")[2]
    return f"{path.removesuffix('.py')}:{function}"


def shares(samples: Mapping[str, int], us: float) -> dict[str, float]:
    """Microseconds by function, of `us` in all; the largest first."""
    total = sum(samples.values()) or 1
    return {name: us * count / total for name, count in sorted(samples.items(), key=lambda item: -item[1])}


def rows(parts: Mapping[str, float]) -> list[tuple[str, float]]:
    """The largest parts, and one row for the sum of the others."""
    items = list(parts.items())
    rest = sum(us for _, us in items[SHOWN:])
    return [*items[:SHOWN], (f"{max(0, len(items) - SHOWN)} others", rest)]


def by_room(parts: Mapping[str, float]) -> dict[str, float]:
    """Microseconds by the folder of a package, or by the module at its root."""
    found: defaultdict[str, float] = defaultdict(float)
    for name, us in parts.items():
        found[name.partition(":")[0].partition("/")[0].partition(" ")[0]] += us
    return dict(found)


if __name__ == "__main__":
    main()
