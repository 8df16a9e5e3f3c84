"""The program that serves the bus."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pilotlight_supervisor.doctor.bounded_process import run_bounded
from pilotlight_supervisor.doctor.finding import Finding, Health, judged

PROGRAM = "nats-server"
TESTED_BUS = (2, 15)
"""What the platform is tested with."""


@dataclass(frozen=True, kw_only=True)
class BusProgram:
    path: str
    """"": it is not installed."""
    version: str


def read_bus_program() -> BusProgram:
    """The one beside this interpreter, which the package brings, or on PATH."""
    beside = Path(sys.executable).parent / PROGRAM
    path = str(beside) if beside.is_file() else shutil.which(PROGRAM) or ""
    if not path:
        return BusProgram(path="", version="")
    try:
        told = run_bounded([path, "--version"], 5.0).told
    except OSError:
        told = ""
    found = re.search(r"\d+(?:\.\d+)+", told)
    return BusProgram(path=path, version=found[0] if found else "")


def bus_program_findings(program: BusProgram) -> Iterator[Finding]:
    """Whether there is one, and of which version."""
    wanted = dotted(TESTED_BUS)
    there = bool(program.path)
    yield judged(
        PROGRAM, f"{program.path} {program.version or 'of no version'}" if there else "not installed",
        f"{wanted} or newer", ok=version_of(program.version) >= TESTED_BUS,
        otherwise=Health.WARN if there else Health.FAIL, todo="pip install 'pilotlight[server]'    # brings it",
    )  # fmt: skip


def version_of(text: str) -> tuple[int, ...]:
    """Its first two numbers."""
    return tuple(int(part) for part in re.findall(r"\d{1,9}", text)[:2])


def dotted(version: tuple[int, ...]) -> str:
    """As people write it."""
    return ".".join(map(str, version))
