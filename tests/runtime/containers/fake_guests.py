"""Guests for a `FakeLauncher`, and a starter of blanks that uses them."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from pilotlight_runtime.containers.blanks.base_environment import BaseEnvironment
from pilotlight_runtime.containers.blanks.blank_starter import BlankStarter
from pilotlight_runtime.containers.blanks.resource_limits import BASE
from pilotlight_runtime.guest.frames import FRAMES, Hello, encode
from pilotlight_runtime.sandbox.sandbox_port import Launcher
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits, SandboxSpec

BASE_NAME = "default"


async def greeting_guest(_: SandboxSpec, sock: socket.socket) -> int:
    """Says Hello and lives until it is killed."""
    sock.sendall(encode(Hello(pid=1, ms=1.0, frames=FRAMES)))
    return await silent_guest(_, sock)


async def silent_guest(_: SandboxSpec, _sock: socket.socket) -> int:
    """Says nothing and lives until it is killed."""
    await asyncio.Event().wait()
    return 0


def starter_of(
    launcher: Launcher,
    folder: Path,
    group: asyncio.TaskGroup,
    *,
    name: str = BASE_NAME,
    limits: ResourceLimits = BASE,
) -> BlankStarter:
    """A starter of blanks with a base environment, whose name they find in BASE."""
    env = {"PL_PREIMPORT": "torch", "THREADS": "1", "BASE": name}
    base = BaseEnvironment(name=name, python=Path("/usr/bin/python3"), read_only=(), env=env)
    return BlankStarter(launcher=launcher, base=base, folder=folder, group=group, limits=limits)
