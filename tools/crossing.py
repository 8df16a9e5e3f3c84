"""Count the files that one warm unary call crosses: `python -m tools.crossing`.

A real platform runs under an interpreter whose processes note which of our functions are called, and when. A file
counts if one of its functions is called during nearly all of `CALLS` calls, and not in as many windows of the same
length in which nothing is asked. `--root` measures another checkout, `--up` names its module that starts it.
"""

# ruff: noqa: T201 - it is a command; printing is what it does

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

import httpx

SOURCE = ("core", "sdk", "placement", "engine", "runtime", "autoscaler", "gateway", "supervisor")
CROSSED = ("pilotlight_gateway", "pilotlight_runtime")
"""The packages whose files count."""
CALLS = 40
APART_S = 0.35
"""Between calls: longer than a noting thread waits."""
NEARLY_ALWAYS = 0.8
START_S = 60.0

HOOK = """
import json, os, sys, threading, time
argv = " ".join(sys.orig_argv)
role = next((name for word, name in (("guest", "guest"), ("duties", ""), ("pilotlight_gateway", "gateway"),
             ("pilotlight_runtime", "agent")) if word in argv), "")
if role and "devices" not in argv:
    seen = {}
    def note(frame, event, _):
        if event == "call":
            name, now = frame.f_code.co_filename, time.monotonic()
            if "pilotlight_" in name:
                seen.setdefault(f"{name}:{frame.f_code.co_name}", set()).add(int(now * 1000))
    def write():
        global seen
        with open(os.path.join(OUT, f"{role}-{os.getpid()}"), "a") as file:
            while True:
                time.sleep(0.01)
                mine, seen = seen, {}
                if mine:
                    file.write(json.dumps({name: list(at) for name, at in mine.items()}) + chr(10))
                    file.flush()
    threading.setprofile(note)
    sys.setprofile(note)
    threading.Thread(target=write, daemon=True).start()
"""


def traced_python(folder: Path, root: Path, out: Path) -> Path:
    """An interpreter with our environment's packages, the checkout at `root`, and the hook."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (packages,) = Path(sys.prefix).glob("lib/python*/site-packages")
    (site / "crossing_hook.py").write_text(f"OUT = {str(out)!r}\n{HOOK}")
    lines = [*(str(root / name) for name in SOURCE if (root / name).is_dir()), str(packages), "import crossing_hook"]
    (site / "crossing.pth").write_text("\n".join(lines) + "\n")
    return folder / "bin" / "python"


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[None]:
    """A platform, until the block ends."""
    path = f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}"  # nats-server is there
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PATH": path})
    try:
        until = time.monotonic() + START_S
        while not (folder / "ready.json").exists():
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"the platform did not start:\n{(folder / 'log').read_text()}")
            time.sleep(0.1)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def windows(root: Path, folder: Path, deadline: float) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """The instants between which a call was under way, and as many between which nothing was asked.

    Raises:
        SystemExit: if the calls have not ended by `deadline`.
    """
    settings = json.loads((folder / "client.json").read_text())
    http = httpx.Client(
        base_url=settings["url"], headers={"Authorization": f"Bearer {settings['api_key']}"}, timeout=30
    )
    access = {"PILOTLIGHT_URL": settings["url"], "PILOTLIGHT_API_KEY": settings["api_key"]}
    access["PYTHONPATH"] = f"{root / 'core'}:{root / 'sdk'}"
    cli = [sys.executable, "-m", "pilotlight.cli.main", "deploy", str(root / "examples/hello/app.py")]
    subprocess.run(cli, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **access})
    calls, idle = [], []
    for number in range(CALLS + 5):
        if time.monotonic() > deadline:
            raise SystemExit("the calls took too long")
        began = time.monotonic()
        http.post("/v1/functions/hello.add/calls", json={"input": {"left": 1, "right": 2}}).raise_for_status()
        ended = time.monotonic()
        time.sleep(APART_S)
        if number >= 5:  # the first ones wait for a container
            calls.append((began, ended + 0.01))
            later = ended + 0.05 + 0.25 * (number - 5) / CALLS  # not always as long after: timers of the call end, too
            idle.append((later, later + 0.01 + (ended - began)))
    return calls, idle


def instants_by_function(out: Path) -> dict[str, list[float]]:
    """When each function, `ROLE FILE:NAME`, was called: seconds, in whole milliseconds."""
    instants: dict[str, list[float]] = defaultdict(list)
    for path in out.iterdir():
        role = path.name.partition("-")[0]
        for line in path.read_text().splitlines():
            for name, at in json.loads(line).items():
                if any(package in name for package in CROSSED):
                    instants[f"{role:8}{name[name.index('pilotlight_') :]}"] += [ms / 1000 for ms in at]
    return instants


def first_entries(busy: list[float], within: list[tuple[float, float]]) -> list[float]:
    """How long after its begin each window had its first instant of `busy`, in seconds; windows without have none."""
    firsts = (min((at for at in busy if begin - 0.001 <= at <= end), default=None) for begin, end in within)
    return [first - begin for first, (begin, _) in zip(firsts, within, strict=True) if first is not None]


def main() -> None:
    """Print the files in the order in which a call enters them, and how many they are."""
    parser = argparse.ArgumentParser(prog="python -m tools.crossing", description="Count the files of a call.")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout to measure")
    parser.add_argument("--up", default="pilotlight_supervisor.up", help="its module that starts the platform")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, out = Path(name), Path(name) / "out"
        out.mkdir()
        python = traced_python(folder / "python", options.root.resolve(), out)
        command = [
            str(python), "-m", options.up, "--state-dir", str(folder / "state"), "--port", "0", "--sandbox", "process",
            "--json-ready", str(folder / "ready.json"), "--client-file", str(folder / "client.json"),
        ]  # fmt: skip
        with running(command, folder):
            calls, idle = windows(options.root.resolve(), folder, time.monotonic() + 120)
        busy = instants_by_function(out)
    entered = {name: first_entries(at, calls) for name, at in busy.items()}
    always = {name: len(first_entries(at, idle)) for name, at in busy.items()}
    found: dict[str, float] = {}
    for name, firsts in entered.items():
        if len(firsts) >= NEARLY_ALWAYS * CALLS > always[name]:
            file = name.rpartition(":")[0]
            found[file] = min(found.get(file, inf), statistics.median(firsts))
    for file in sorted(found, key=found.__getitem__):
        print(file)
    print(f"{len({file.split()[-1] for file in found})} files of {' and '.join(CROSSED)} in a warm unary call")


if __name__ == "__main__":
    main()
