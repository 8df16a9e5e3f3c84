"""A program that tries inside a sandbox what must not work, and sends its findings as JSON on the socket.

It is run with `-I -S -c`, so it uses the standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

UNSHARE = {"x86_64": 272, "aarch64": 97}
"""Machine -> number of the call."""
CLONE_NEWUSER = 0x1000_0000
AF_VSOCK = 40


def attempt(action: Callable[[], object]) -> str:
    """The name of the error that `action` raised; "" if it succeeded."""
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return ""


def call_raw(number: int, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def status() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def write_into(folder: str) -> None:
    made = Path(folder) / f".pilotlight-probe-{os.getpid()}"
    made.touch()
    made.unlink()


def fill(path: Path, limit: int) -> int:
    """How many bytes, in whole MiB and at most `limit`, fit into `path` before the disk is full."""
    written = 0
    block = bytes(1 << 20)
    with path.open("wb", buffering=0) as file:
        try:
            while written < limit:
                written += file.write(block)
        except OSError:
            pass
    path.unlink()
    return written


def fork_until_refused(limit: int) -> int:
    """How many children, at most `limit`, could run at once; they end when the pipe is closed."""
    reader, writer = os.pipe()
    made = 0
    try:
        while made < limit:
            if os.fork() == 0:
                os.close(writer)
                os.read(reader, 1)
                os._exit(0)
            made += 1
    except OSError:
        pass
    os.close(writer)
    return made


def findings(port: int, tmp_limit: int, pid_limit: int) -> dict[str, object]:
    app = Path(os.environ["PL_APP"])
    places = ("/", "/etc", "/usr", "/dev", str(app), str(Path(sys.executable).parent.parent))
    return {
        "status": status(),
        "environment": sorted(os.environ),
        "interfaces": sorted(name for _, name in socket.if_nameindex()),
        "connect": attempt(lambda: socket.create_connection(("127.0.0.1", port), 1).close()),
        "vsock": attempt(lambda: socket.socket(AF_VSOCK, socket.SOCK_STREAM).close()),
        "writes": {place: attempt(partial(write_into, place)) for place in places},
        "tmp_bytes": fill(Path(f"/tmp/.pilotlight-probe-{os.getpid()}"), tmp_limit),  # noqa: S108 - /tmp is the sandbox's own
        "processes": sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()),
        "devices": sorted(entry.name for entry in Path("/dev").iterdir()),
        "unshare": attempt(lambda: call_raw(UNSHARE[os.uname().machine], CLONE_NEWUSER)),
        "children": fork_until_refused(pid_limit),
    }


if __name__ == "__main__":
    with socket.socket(fileno=int(os.environ["PL_FD"])) as agent:
        agent.sendall(json.dumps(findings(*map(int, sys.argv[1:]))).encode() + b"\n")
        agent.recv(1)  # stay until the agent has inspected its side
