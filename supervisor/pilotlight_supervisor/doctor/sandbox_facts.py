"""What a node could guarantee to containers, as `pilotlight node check` finds it, and the program for sandboxes."""

from __future__ import annotations

import re
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import msgspec

from pilotlight_runtime.node.guarantee_check import GuaranteeCheck
from pilotlight_runtime.sandbox.exec_chain import ENV
from pilotlight_supervisor.doctor.bounded_process import run_bounded
from pilotlight_supervisor.doctor.finding import Finding, Health, judged

CHECK_S = 60.0
"""It takes a second, and with a GPU that no process holds open some seconds more."""
OLDEST = (0, 8)
"""The first bubblewrap that keeps a sandbox from making user namespaces (`--disable-userns`)."""
INSTALL = "apt-get install -y bubblewrap"
DELEGATE = "run the agent as root, or by systemd with Delegate=yes"
TODO = {
    "sandbox starts": "pilotlight node check    # as the user that the agent will be",
    "own host uid": "run the agent as root: it gives each container a uid of its own, and drops its own rights for it",
    "memory limit": DELEGATE,
    "process limit": DELEGATE,
    "cpu limit": DELEGATE,
    "gpu driver": "apt-get install -y nvidia-driver-580-server    # and start the machine anew",
    "gpu libraries": "apt-get install -y libnvidia-compute-580-server",
    "gpus": "nvidia-smi    # what the driver says of them",
    "gpu in a sandbox": "nvidia-smi; ls -l /dev/nvidia*    # the driver's devices must be there for all users",
}
ANY_WALL = "docs/isolation.md says what each wall is made of; --sandbox bubblewrap has them all"
PERSISTENCE = "gpu persistence"


@dataclass(frozen=True, kw_only=True)
class SandboxFacts:
    program: str
    """Where bubblewrap is; "": nowhere."""
    version: str
    is_setuid: bool
    checks: tuple[GuaranteeCheck, ...]
    problem: str = ""
    """Why there are no checks."""


def read_sandbox(kind: str) -> SandboxFacts:
    """Those of this machine; starts sandboxes, and ends them."""
    program = shutil.which("bwrap", path=ENV["PATH"]) or ""
    checks, problem = check_node(kind)
    return SandboxFacts(
        program=program,
        version=_version(program) if program else "",
        is_setuid=bool(program) and bool(Path(program).stat().st_mode & stat.S_ISUID),
        checks=checks,
        problem=problem,
    )


def check_node(kind: str) -> tuple[tuple[GuaranteeCheck, ...], str]:
    """What `pilotlight node check` finds, in a process of its own: a driver that hangs is left behind with it."""
    command = [sys.executable, "-m", "pilotlight_runtime.node.node_check", "--json", "--sandbox", kind]
    try:
        done = run_bounded(command, CHECK_S)
    except TimeoutError as error:
        return (), str(error)
    try:
        return tuple(msgspec.json.decode(done.told, type=list[GuaranteeCheck])), ""
    except msgspec.DecodeError:
        return (), done.complaint.strip().rpartition("\n")[2] or f"it ended with {done.returncode}"


def _version(program: str) -> str:
    try:
        done = run_bounded([program, "--version"], 5.0)
    except OSError:
        return ""
    return done.told.strip().rpartition(" ")[2]


def sandbox_findings(facts: SandboxFacts, kind: str) -> Iterator[Finding]:
    """The walls of a sandbox, and what they are made with."""
    if kind == "bubblewrap":
        yield from _bubblewrap(facts)
    if facts.problem:
        yield judged("node check", facts.problem, "an answer", ok=False, todo="pilotlight node check")
    yield from guarantee_findings(facts.checks)


def _bubblewrap(facts: SandboxFacts) -> Iterator[Finding]:
    oldest = ".".join(map(str, OLDEST))
    numbers = tuple(int(part) for part in re.findall(r"\d+", facts.version)[:2])
    yield judged(
        "bubblewrap", f"{facts.program} {facts.version or 'of no version'}" if facts.program else "not installed",
        f"{oldest} or newer", ok=numbers >= OLDEST, todo=INSTALL,
    )  # fmt: skip
    if facts.is_setuid:
        yield judged(
            "bubblewrap's mode", f"{facts.program} is set-uid", "not set-uid: it could not shut user namespaces",
            ok=False, todo=f"chmod u-s {quote(facts.program)}",
        )  # fmt: skip


def guarantee_findings(checks: Sequence[GuaranteeCheck]) -> Iterator[Finding]:
    """A line for each guarantee; what it means for the node that one is missing is what was expected of it."""
    for check in checks:
        todo = TODO.get(check.name, ANY_WALL)
        if check.name == PERSISTENCE and check.ok:
            yield judged(
                check.name, check.detail, "on: else each first use of a GPU waits for its driver",
                ok="off" not in check.detail, todo="nvidia-smi -pm 1", otherwise=Health.WARN,
            )  # fmt: skip
            continue
        yield judged(check.name, check.detail, f"it holds; else {check.consequence}", ok=check.ok, todo=todo)
