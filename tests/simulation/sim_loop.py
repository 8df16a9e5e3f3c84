"""An event loop without sleep: asyncio tasks of a simulated process, by the process's clock."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import events
from collections import deque
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVarTuple

from tests.simulation.promises import Broken

if TYPE_CHECKING:
    from tests.simulation.world import Process

Ts = TypeVarTuple("Ts")

CANCELLED_AT_MOST = 8
"""Times that a task is cancelled which awaits something when it ends."""


class SimLoop(asyncio.BaseEventLoop):
    """The loop of one life of a process. Each event of the process runs to the point where every task waits."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process
        self._life = process.life
        self._due: deque[asyncio.Handle] = deque()
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._broken: Broken | None = None
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        return self._process.clock

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._due.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        world = self._process.world
        world.at(world.now + max(0.0, when - self.time()), partial(self._ring, timer))
        return timer

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if isinstance(error := context.get("exception"), BaseException):
            self._broken = self._broken or _broken_by(error)

    def turn(self, do: Callable[[], None]) -> None:
        """Do something in this loop, and all that follows from it at once.

        Raises:
            Broken: a task has broken a promise, or a callback has raised.
        """
        events._set_running_loop(self)
        try:
            do()
            while self._due:
                handle = self._due.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            events._set_running_loop(None)
        if self._broken is not None:
            raise self._broken

    def forget(self) -> None:
        """End the tasks of a life that is over, whose process does nothing any more."""
        for _ in range(CANCELLED_AT_MOST):
            with contextlib.suppress(Broken):
                self.turn(self._cancel_all)
        assert not self._tasks, f"{self._tasks} cannot be cancelled"
        self.close()

    def _cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _make_task(self, _: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=self, **more)
        self._tasks[task] = None
        task.add_done_callback(self._look)
        return task

    def _ring(self, timer: asyncio.TimerHandle) -> None:
        if not timer.cancelled() and self._life == self._process.life:
            self._process._do(partial(_run, timer))

    def _look(self, task: asyncio.Task[Any]) -> None:
        del self._tasks[task]
        if not task.cancelled() and isinstance(error := task.exception(), Broken):
            self._broken = self._broken or error


def _run(timer: asyncio.TimerHandle) -> None:
    if not timer.cancelled():  # while the process was paused
        timer._run()


def _broken_by(error: BaseException) -> Broken:
    return error if isinstance(error, Broken) else Broken("P6", f"a callback raised {error!r}")
