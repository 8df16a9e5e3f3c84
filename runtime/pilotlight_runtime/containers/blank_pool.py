"""The blanks of a node: so many are kept ready, and whoever needs a sandbox takes one or starts one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog

from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.logs import LogLine
from pilotlight_runtime.containers.base_environment import GUEST_ARGV, PREIMPORT, BaseEnvironment
from pilotlight_runtime.containers.blank import Blank, BlankDied, nobody
from pilotlight_runtime.containers.resource_limits import BASE
from pilotlight_runtime.devices.device_port import DeviceAccess
from pilotlight_runtime.logs.log_tap import LogTap
from pilotlight_runtime.sandbox.sandbox_errors import SandboxError
from pilotlight_runtime.sandbox.sandbox_port import Launcher, SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import APP, ResourceLimits, SandboxSpec

log = structlog.get_logger(__name__)

QUIET_S = 2.0
"""How long making a blank waits for containers that are starting: they need the processors more."""
PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Between attempts, when blanks do not come to life."""


class BlankPool:
    """Blanks of one base environment on CPU slots. `room()` is how many containers the node can hold."""

    def __init__(
        self,
        *,
        launcher: Launcher,
        base: BaseEnvironment,
        folder: Path,
        size: int,
        room: Callable[[], int],
        starting: Callable[[], bool],
        changed: Callable[[], None],
        group: asyncio.TaskGroup,
        pauses: tuple[float, ...] = PAUSES_S,
    ) -> None:
        self.base = base
        self._pauses = pauses
        self._launcher = launcher
        # Where only rlimits count memory, they can be set before the start alone.
        self._can_limit_later = launcher.guarantees().memory != "rlimit"
        self._folder = folder
        self._size = size
        self._room = room
        self._starting = starting
        self._changed = changed
        self._group = group
        self._blanks: list[Blank] = []
        self._stirred = asyncio.Event()
        self._failures = 0

    @property
    def ready(self) -> int:
        """How many wait for a container."""
        return sum(blank.is_ready for blank in self._blanks)

    async def take(self, limits: ResourceLimits) -> Blank:
        """A blank that is ready, else a new sandbox; with a container's limits.

        One that still imports for nobody in particular is left to that: a new one that imports only what the function
        itself wants is ready in a tenth of the time, unless it wants just the same.

        Raises:
            SandboxError: if none could be started.
        """
        for blank in [blank for blank in self._blanks if blank.is_ready] if self._can_limit_later else []:
            self._blanks.remove(blank)
            blank.on_exit = nobody
            if blank.exit is None and self._limit(blank, limits):
                return blank
        return await self.start(limits)

    async def start(self, limits: ResourceLimits, access: DeviceAccess | None = None, *, ahead: bool = False) -> Blank:
        """A new one, not ready yet, which sees the devices of `access`; `ahead` of need it makes the costly imports.

        Raises:
            SandboxError: if it could not be started.
        """
        access = access or DeviceAccess()
        name = f"b-{token(12)}"
        folder = self._folder / name
        (folder / "app").mkdir(parents=True)
        sandbox = await self._launcher.start(
            SandboxSpec(
                name=name,
                python=self.base.python,
                argv=GUEST_ARGV,
                code_dir=folder / "app",
                read_only=(*self.base.read_only, *access.read_only),
                device_nodes=access.nodes,
                env={**self.base.env, **access.env} | ({} if ahead else {PREIMPORT: ""}),
                limits=limits,
                uid=None,
            )
        )
        tap = LogTap(stdout_fd=sandbox.stdout_fd, stderr_fd=sandbox.stderr_fd, container=name, sink=_say)
        # Plain processes have the host's file system, not one of their own.
        root = APP if self._launcher.name == "bubblewrap" else folder / "app"
        blank = Blank(sandbox, folder=folder, root=root, tap=tap)
        self._group.create_task(blank.watch())
        return blank

    def stir(self) -> None:
        """Something has changed: a blank was taken, a container is ready or gone."""
        self._stirred.set()

    async def run(self) -> None:
        """Keep the pool full until cancelled."""
        while True:
            while len(self._blanks) < min(self._size, self._room()):
                await self._wait_quiet()
                await self._make()
            await self._wait_stirred()

    async def close(self) -> None:
        """End all blanks that nobody has taken."""
        blanks, self._blanks = self._blanks, []
        async with asyncio.TaskGroup() as group:
            for blank in blanks:
                blank.on_exit = nobody
                group.create_task(blank.bury())

    async def _make(self) -> None:
        blank = None
        try:
            blank = await self.start(BASE, ahead=True)
            self._blanks.append(blank)
            await blank.wait_ready()
        except (SandboxError, BlankDied, OSError) as error:
            log.warning("no blank could be made", error=str(error), failures=self._failures + 1)
            if blank is not None and blank in self._blanks:
                self._blanks.remove(blank)
                await blank.bury()
            await asyncio.sleep(self._pauses[min(self._failures, len(self._pauses) - 1)])
            self._failures += 1
            return
        self._failures = 0
        self._changed()
        if blank in self._blanks:
            blank.on_exit = lambda exit_: self._lost(blank, exit_)

    def _limit(self, blank: Blank, limits: ResourceLimits) -> bool:
        """Whether it can live within the limits; one that uses more already is of no use to anybody."""
        try:
            blank.sandbox.limit(limits)
        except OSError:
            self._group.create_task(blank.bury())
            return False
        return True

    def _lost(self, blank: Blank, exit_: SandboxExit) -> None:
        log.warning("a blank has ended before it was used", sandbox=blank.name, exit=str(exit_))
        self._blanks.remove(blank)
        self._group.create_task(blank.bury())
        self._changed()
        self.stir()

    async def _wait_quiet(self) -> None:
        try:
            async with asyncio.timeout(QUIET_S):
                while self._starting():
                    await self._wait_stirred()
        except TimeoutError:
            pass

    async def _wait_stirred(self) -> None:
        await self._stirred.wait()
        self._stirred.clear()


def _say(line: LogLine) -> None:
    log.warning("a sandbox says", sandbox=line.container, line=line.text)
