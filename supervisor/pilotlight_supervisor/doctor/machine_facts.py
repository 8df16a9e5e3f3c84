"""What a host has room for: memory, processors, files that may be open, ports that are free."""

from __future__ import annotations

import errno
import os
import re
import resource
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pilotlight_supervisor.doctor.finding import Finding, Health, HostRole, judged

GIB = 1 << 30
MEMORY = {HostRole.NODE: 4 * GIB, HostRole.GATEWAY: 2 * GIB, HostRole.BUS: GIB}
"""A node keeps 1 GiB for the platform, and a function has 2 GiB unless it says otherwise."""
FREE = GIB
OPEN_FILES = 65_536
"""Each connection of a client is one, and so is each of a container's streams."""


@dataclass(frozen=True, kw_only=True)
class MachineFacts:
    memory: int
    available: int
    swap: int
    cores: int
    open_files: int
    """As many as a process may ask for."""
    ports: Mapping[int, str] = field(default_factory=dict)
    """By port that is to be listened at, what keeps it from that; "": nothing."""


def read_machine(ports: Iterable[int], meminfo: Path = Path("/proc/meminfo")) -> MachineFacts:
    """Those of this machine; listens at none of the ports for longer than it takes to see that it could."""
    sizes = {
        name: int(kib) << 10 for name, kib in re.findall(r"^(\w+):\s+(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    }
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MachineFacts(
        memory=sizes.get("MemTotal", 0),
        available=sizes.get("MemAvailable", 0),
        swap=sizes.get("SwapTotal", 0),
        cores=len(os.sched_getaffinity(0)),
        open_files=1 << 30 if hard == resource.RLIM_INFINITY else hard,
        ports={port: _why_not(port) for port in ports},
    )


def machine_findings(facts: MachineFacts, role: HostRole) -> Iterator[Finding]:
    """What the role needs of it."""
    enough = MEMORY[role]
    yield judged(
        "memory", f"{facts.memory / GIB:.1f} GiB, {facts.available / GIB:.1f} GiB free; {facts.cores} cores",
        f"{enough / GIB:.0f} GiB or more, {FREE / GIB:.0f} GiB of it free",
        ok=facts.memory >= enough and facts.available >= FREE, otherwise=Health.WARN,
        todo="ps aux --sort=-rss | head    # what has it; or give the host more",
    )  # fmt: skip
    if role is HostRole.NODE:
        yield judged(
            "swap", f"{facts.swap / GIB:.1f} GiB" if facts.swap else "none",
            "none, or encrypted: values of secrets in a function's memory may be written there", ok=not facts.swap,
            todo="swapoff -a    # and take it out of /etc/fstab", otherwise=Health.WARN,
        )  # fmt: skip
    yield judged(
        "open files", f"{facts.open_files} a process at most", f"{OPEN_FILES} or more",
        ok=facts.open_files >= OPEN_FILES, otherwise=Health.WARN,
        todo=f"LimitNOFILE={16 * OPEN_FILES} in its systemd unit; in a shell: ulimit -Hn {16 * OPEN_FILES}",
    )  # fmt: skip
    for port, why in facts.ports.items():
        yield judged(
            f"port {port}", why or "free", "free", ok=not why, todo=f"ss -ltnp 'sport = :{port}'    # who has it"
        )


def _why_not(port: int) -> str:
    try:
        with socket.create_server(("", port), backlog=1):
            return ""
    except OSError as error:
        return "taken by another process" if error.errno == errno.EADDRINUSE else str(error.strerror)
