"""The blanks of a base environment: `size` are kept ready; a container takes one, or a new sandbox is started."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

import structlog

from pilotlight_runtime.containers.blanks.blank import Blank, BlankDied, ignore_exit
from pilotlight_runtime.containers.blanks.blank_starter import BlankStarter
from pilotlight_runtime.sandbox.sandbox_errors import SandboxError
from pilotlight_runtime.sandbox.sandbox_port import SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits

log = structlog.get_logger(__name__)

QUIET_S = 2.0
"""How long making a blank waits for containers, which need the processors more."""
LOOK_EVERY_S = 0.05
PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Between attempts, when blanks fail to start."""


class BusyContainers(Protocol):
    @property
    def needs_processors(self) -> bool: ...


class BlankDemand(Protocol):
    @property
    def cpu_slots(self) -> int: ...

    @property
    def needs_processors(self) -> bool: ...


class BlankPool:
    """Keeps `size` blanks on CPU slots; `changed` is called when the number of ready ones changes."""

    def __init__(
        self,
        starter: BlankStarter,
        *,
        size: int,
        changed: Callable[[], None],
        pauses_s: tuple[float, ...] = PAUSES_S,
    ) -> None:
        self.starter = starter
        self._size = self._most = size
        self._changed = changed
        self._pauses_s = pauses_s
        self._blanks: list[Blank] = []
        self._woken = asyncio.Event()
        self._failures = 0
        self._is_first_fill = True

    def resize(self, size: int) -> None:
        """Keep so many, at most as many as it was made for: those beyond are ended."""
        self._size = min(size, self._most)
        while len(self._blanks) > self._size:
            blank = self._blanks.pop()
            blank.on_exit = ignore_exit
            self.starter.group.create_task(blank.destroy())
        self.wake()

    @property
    def ready(self) -> int:
        return sum(blank.is_ready for blank in self._blanks)

    def missing(self, demand: BlankDemand) -> int:
        """How many there should be that are not ready."""
        return max(0, self._wanted(demand) - self.ready)

    async def take(self, limits: ResourceLimits) -> Blank:
        """A ready blank, else a new sandbox, with a container's limits.

        A blank that is still importing is not taken: a new sandbox imports only what the function needs, and is usually
        ready in a tenth of the time. Nor is any for limits that a started sandbox cannot get.

        Raises:
            SandboxError: if none could be started.
        """
        ready = [blank for blank in self._blanks if blank.is_ready] if self.starter.can_limit_later(limits) else []
        for blank in ready:
            self._blanks.remove(blank)
            blank.on_exit = ignore_exit
            if blank.exit is None and self.starter.limit(blank, limits):
                return blank
        return await self.starter.start(limits)

    def wake(self) -> None:
        self._woken.set()

    async def run(self, demand: BlankDemand) -> None:
        """Keep the pool full until cancelled."""
        while True:
            while len(self._blanks) < self._wanted(demand):
                await wait_quiet(demand, self._woken)
                await self._make()
            self._is_first_fill = False
            await self._wait_woken()

    async def close(self) -> None:
        blanks, self._blanks = self._blanks, []
        async with asyncio.TaskGroup() as group:
            for blank in blanks:
                blank.on_exit = ignore_exit
                group.create_task(blank.destroy())

    def _wanted(self, demand: BlankDemand) -> int:
        return min(self._size, demand.cpu_slots)

    async def _make(self) -> None:
        blank = None
        try:
            limits = self.starter.first_limits if self._is_first_fill else self.starter.limits
            blank = await self.starter.start(limits, ahead=True)
            self._blanks.append(blank)
            await blank.wait_ready()
        except (SandboxError, BlankDied, OSError) as error:
            failed: Exception | None = error
        else:
            failed = None
        if blank is not None and blank not in self._blanks:
            return  # it was taken, or one too many
        if failed is not None:
            log.warning("no blank could be made", error=str(failed), failures=self._failures + 1)
            if blank is not None:
                self._blanks.remove(blank)
                await blank.destroy()
            await asyncio.sleep(self._pauses_s[min(self._failures, len(self._pauses_s) - 1)])
            self._failures += 1
            return
        self._failures = 0
        self._changed()
        if blank is not None:
            blank.on_exit = lambda exit_: self._lost(blank, exit_)

    def _lost(self, blank: Blank, exit_: SandboxExit) -> None:
        log.warning("a blank has ended before it was used", sandbox=blank.name, exit=str(exit_))
        self._blanks.remove(blank)
        self.starter.group.create_task(blank.destroy())
        self._changed()
        self.wake()

    async def _wait_woken(self) -> None:
        await self._woken.wait()
        self._woken.clear()


async def wait_quiet(demand: BusyContainers, woken: asyncio.Event) -> None:
    """Wait until the containers leave processors for a blank, for `QUIET_S` at most."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(QUIET_S):
            while demand.needs_processors:
                with contextlib.suppress(TimeoutError):  # the end of a call wakes nobody
                    async with asyncio.timeout(LOOK_EVERY_S):  # `wait_for` may lose a cancellation
                        await woken.wait()
                woken.clear()
