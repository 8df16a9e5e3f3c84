"""How a benchmark says what it found: a table for people, and as its last line one JSON object for programs."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pilotlight_core.host.compiled import IS_COMPILED
from tools.compiled_tree import CannotCompile, compiled_tree


def arguments(name: str, purpose: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=purpose)
    parser.add_argument("--quick", action="store_true", help="a short run: shows that it works, not how fast it is")
    parser.add_argument("--plain", action="store_true", help="measure plain Python, not what the wheel ships: no build")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of this run; unless they say `--plain`, it begins anew on the compiled tree, built if need be.

    The environment carries the tree to every process that the benchmark starts.
    """
    options = parser.parse_args()
    if options.plain:
        if IS_COMPILED:
            parser.error("--plain, but PYTHONPATH leads to compiled modules: unset it")
        return options
    try:
        path = str(compiled_tree())
    except CannotCompile as error:
        parser.error(f"{error}; --plain measures plain Python")
    others = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if others[:1] != [path]:
        print(f"measuring the compiled modules of {path} (--plain: plain Python)", flush=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([path, *others])}
        os.execve(sys.executable, sys.orig_argv, environment)  # noqa: S606 - this very program, with its own arguments
    if not IS_COMPILED:
        parser.error(f"PYTHONPATH leads to {path}, but the modules that were found are plain")
    return options


def machine() -> str:
    """The machine in words: processor, cores, memory, GPUs, Python, and whether our own modules are compiled."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    kind = "compiled" if IS_COMPILED else "plain"
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    words = [model, f"{os.cpu_count()} cores", f"{gib:.0f} GiB", *_gpus(), f"Python {platform.python_version()}", kind]
    return ", ".join(words)


def _gpus(driver: Path = Path("/proc/driver/nvidia/gpus")) -> list[str]:
    """Each kind of GPU that the driver knows, and how many."""
    lines = [line for file in driver.glob("*/information") for line in file.read_text().splitlines()]
    names = Counter(line.split(":", 1)[1].strip() for line in lines if line.startswith("Model:"))
    return [f"{count} {name}" for name, count in names.items()]


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their headings; numbers to three significant places."""
    shown = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        shown.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        shown.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=120).print(shown)


def finish(name: str, figures: Mapping[str, float]) -> None:
    """Print the last line: the benchmark's name, the machine and the figures; `compiled` is 1 if our modules were."""
    rounded = {key: round(value, 4) for key, value in figures.items()} | {"compiled": int(IS_COMPILED)}
    print(json.dumps({"benchmark": name, "machine": machine(), "figures": rounded}))


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` of the values lie (linear between neighbours)."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def exact_cpu_seconds(pid: int) -> float:
    """The same as the scheduler counts it, to the nanosecond in place of a hundredth of a second; of the threads that
    there are.
    """
    found = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += int((task / "schedstat").read_text().split()[0])
        except OSError:
            continue  # it has just ended
    return found / 1e9


def cpu_share(begins: float, until: float) -> float:
    """Wait from one monotonic instant to another; the part of all the machine's processors in use between them."""
    time.sleep(max(0.0, begins - time.monotonic()))
    idle, everything = _ticks()
    time.sleep(max(0.0, until - time.monotonic()))
    idle_then, everything_then = _ticks()
    return 1.0 - (idle_then - idle) / max(1, everything_then - everything)


def _ticks() -> tuple[int, int]:
    """Clock ticks that the processors were idle, and all, since the machine started."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def pss_mib(pid: int) -> float:
    """Proportional set size of a process in MiB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0
