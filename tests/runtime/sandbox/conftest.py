"""What the tests of the sandboxes share: real launchers, and `Inside`, which runs a line of Python in a sandbox."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import select
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pilotlight_runtime.sandbox.bubblewrap import BubblewrapLauncher
from pilotlight_runtime.sandbox.interpreter import interpreter_mounts
from pilotlight_runtime.sandbox.sandbox_port import Launcher, Sandbox
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits, SandboxSpec

MIB = 1 << 20
PYTHON = Path(sys.prefix) / "bin" / "python"
LIMITS = ResourceLimits(
    memory_bytes=256 * MIB, pids=32, cpu_millis=2000, tmp_bytes=16 * MIB, shm_bytes=16 * MIB, open_files=128,
    file_bytes=64 * MIB,
)  # fmt: skip
#: Before the code of every test: `agent` is the socket, `tell` sends a value and `attempt` the name of an error.
PRELUDE = """
import ctypes, errno, json, os, socket, sys, time
agent = socket.socket(fileno=int(os.environ["PL_FD"]))
def tell(value):
    agent.sendall(json.dumps(value).encode() + b"\\n")
def attempt(action, *arguments):
    try:
        action(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    return "done"
def call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
"""


@pytest.fixture
def launcher() -> Iterator[BubblewrapLauncher]:
    made = BubblewrapLauncher()
    yield made
    made.close()


@pytest.fixture
def code_dir(tmp_path: Path) -> Path:
    """Open itself, but below a folder of mode 0700, as an agent's state folder may be."""
    folder = tmp_path / "state" / "code"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o700)
    folder.chmod(0o755)
    return folder


@pytest.fixture
def spec(code_dir: Path) -> SandboxSpec:
    return SandboxSpec(
        name="test",
        python=PYTHON,
        argv=("-I", "-S", "-c", "pass"),
        code_dir=code_dir,
        read_only=interpreter_mounts(PYTHON),
        device_nodes=(),
        env={},
        limits=LIMITS,
        uid=None,
    )


async def read_value(sandbox: Sandbox) -> Any:
    """The next value that the code inside tells; None when it has closed its socket."""
    sandbox.socket.settimeout(0)
    loop, line = asyncio.get_running_loop(), b""
    while not line.endswith(b"\n"):
        chunk = await loop.sock_recv(sandbox.socket, 1)
        if not chunk:
            return None
        line += chunk
    return json.loads(line)


def read_output(fd: int) -> str:
    """What an ended sandbox has written; its last processes may be ending still, and hold the pipe open."""
    text = b""
    while select.select([fd], [], [], 2.0)[0] and (chunk := os.read(fd, 1 << 16)):
        text += chunk
    return text.decode()


Starter = Callable[..., Awaitable[Sandbox]]


@pytest.fixture
async def start(launcher: BubblewrapLauncher, spec: SandboxSpec) -> AsyncIterator[Starter]:
    """Start code in a sandbox: `await start(code, name=..., limits=...)`; cleaned up after the test."""
    started: list[Sandbox] = []

    async def starter(code: str, *, using: Launcher = launcher, **changes: Any) -> Sandbox:
        options = changes.pop("options", ("-I", "-S"))
        changed = dataclasses.replace(spec, argv=(*options, "-c", PRELUDE + code), **changes)
        started.append(await using.start(changed))
        return started[-1]

    yield starter
    for sandbox in started:
        await sandbox.cleanup()


@pytest.fixture
async def ask(start: Starter) -> Callable[..., Awaitable[Any]]:
    """Start code, and wait for the first value that it tells."""

    async def asker(code: str, **changes: Any) -> Any:
        sandbox = await start(code, **changes)
        value = await read_value(sandbox)
        if value is None:
            raise AssertionError(f"{await sandbox.wait()}: {read_output(sandbox.stderr_fd)}")
        return value

    return asker


def limits(**changes: int) -> ResourceLimits:
    return dataclasses.replace(LIMITS, **changes)


def all_end(pids: Iterable[int], seconds: float = 20.0) -> Callable[[], bool]:
    """Watch `pids`, which live; what is returned waits until they have ended, and tells whether they did in time."""
    fds = [os.pidfd_open(pid) for pid in pids]

    def ended() -> bool:
        try:
            return all(select.select([fd], [], [], seconds)[0] for fd in fds)
        finally:
            for fd in fds:
                os.close(fd)

    return ended


@contextmanager
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that would stay, and does not outlive the block."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            yield process
        finally:
            process.kill()
