"""A blank: a sandbox that is started ahead, with the expensive imports done, for one later container.

Its folders of code, of models, of packages and of compiled files are empty and read-only; the agent links a version's
files into them. It is used once.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from pilotlight_runtime.guest.frames import FRAMES, KNOWS_NETWORK, Hello
from pilotlight_runtime.guest.guest_connection import GuestConnection
from pilotlight_runtime.logs.log_tap import LogTap
from pilotlight_runtime.sandbox.sandbox_port import Sandbox, SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import PACKAGES

log = structlog.get_logger(__name__)

HELLO_S = 120.0
"""Imports of a large base environment on a busy node take a while."""
END_S = 1.0
"""How long a guest that has closed its socket may take to end."""


class BlankDied(Exception):
    """A sandbox ended, or hung, before its guest was ready, or its guest is of another release."""


class Blank:
    def __init__(self, sandbox: Sandbox, *, folder: Path, root: Path, network: Path, tap: LogTap) -> None:
        self.name = sandbox.name
        self.sandbox = sandbox
        self.tap = tap
        self.code = folder / "app"
        """The folder of the version's files."""
        self.models = folder / "models"
        """The folder of its artifacts."""
        self.root = root
        """The path of `code` inside the sandbox."""
        self.network = folder / "network"
        """The folder of the socket to the proxy, if there is one."""
        self.network_inside = network
        """The path of that inside the sandbox."""
        self.compiled = self.compiled_inside = folder / "compiled"
        """The folder of what containers of the version have compiled before, and its path inside the sandbox."""
        self.compile_into = folder / "compiling"
        """The path inside for what its compilers keep."""
        self.packages = folder / "packages"
        """The folder of what was built of its requirements."""
        self.packages_inside = PACKAGES
        """The path of that inside the sandbox."""
        self.on_exit: Callable[[SandboxExit], None] = ignore_exit
        self.exit: SandboxExit | None = None
        self.hello_ms = 0.0
        self.has_opened_cuda = False
        """Whether what it has imported uses the GPU already."""
        self.frames = (0, 0)
        """The version of its guest's frames."""
        self.broken = ""
        """Why its guest's connection ended; "" while it is open."""
        self._folder = folder
        self._connection: GuestConnection | None = None
        self._destroyed = False
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ready.add_done_callback(
            lambda ready: ready.cancelled() or ready.exception()
        )  # retrieved, also when nothing waits for it

    @property
    def is_ready(self) -> bool:
        """Whether its guest waits for a Load."""
        return self.exit is None and self._ready.done() and self._ready.exception() is None

    async def watch(self) -> None:
        """Read the guest's frames until the sandbox has ended, then call `on_exit`."""
        try:
            self._connection = await GuestConnection.open(
                self.sandbox.socket, on_frame=self._on_hello, on_closed=self._on_closed
            )
        except OSError as error:
            log.warning("a guest's socket could not be used", sandbox=self.name, error=str(error))
            self.sandbox.kill()
        if self._connection is not None and self._destroyed:
            self._connection.close()  # it was opened too late for `destroy`
        self.exit = await self.sandbox.wait()
        self.tap.close()
        if not self._ready.done():
            self._ready.set_exception(BlankDied(f"the sandbox ended before its guest was ready: {self.exit}"))
        self.on_exit(self.exit)

    async def wait_ready(self) -> None:
        """Wait for the guest's Hello.

        Raises:
            BlankDied: if the sandbox ended, or no Hello came within HELLO_S.
        """
        try:
            async with asyncio.timeout(HELLO_S):
                await asyncio.shield(self._ready)
        except TimeoutError:
            self.sandbox.kill()
            raise BlankDied(f"the sandbox was not ready after {HELLO_S:g} s") from None

    def hand_over(self, on_frame: Callable[[Any], None]) -> GuestConnection:
        """Give a ready guest's connection to its container, whose `on_frame` gets every frame from now on."""
        assert self._connection is not None  # noqa: S101 - it has said Hello
        self._connection.on_frame = on_frame
        return self._connection

    async def destroy(self) -> None:
        """End it and remove its files; takes seconds at most."""
        self._destroyed = True
        self.sandbox.kill()
        if self._connection is not None:
            self._connection.close()
        self.tap.close()
        await self.sandbox.cleanup()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    def _on_closed(self, error: Exception | None) -> None:
        self.broken = f"the guest's connection broke: {error}" if error else "the guest closed its connection"
        if error is not None:
            log.warning("a guest's connection broke", sandbox=self.name, error=str(error))
        # A guest without a socket is useless, but its process is ending, and its own exit has the reason.
        asyncio.get_running_loop().call_later(END_S, self.sandbox.kill)

    def _on_hello(self, frame: Any) -> None:
        if not isinstance(frame, Hello) or self._ready.done():
            return
        if frame.frames[0] != FRAMES[0]:
            self._ready.set_exception(BlankDied(other_frames(frame.frames)))
            self.sandbox.kill()
            return
        self.hello_ms = frame.ms
        self.has_opened_cuda = frame.cuda
        self.frames = frame.frames
        self._ready.set_result(None)


def other_frames(frames: tuple[int, int]) -> str:
    """Why a guest with frames of another major version is refused."""
    theirs, ours = (".".join(map(str, version)) for version in (frames, FRAMES))
    return (
        f"its guest speaks version {theirs} of the frames, this agent {ours}: install the agent's release of "
        "pilotlight in the base environment"
    )


def network_unknown(frames: tuple[int, int]) -> str:
    """Why a guest with these frames cannot be let out, though the function names a network; "": it can be."""
    return "" if frames >= KNOWS_NETWORK else f"{other_frames(frames)}: network= needs it"


def ignore_exit(_exit: SandboxExit) -> None:
    """The `on_exit` of a blank without a container."""
