"""Counts the calls under way, so that the process can end without cutting them off."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from pilotlight_core.model.errors import Unavailable


class DrainGate:
    """Counts the calls inside: each runs in `with gate.around(task)`.

    Entering raises Unavailable (`draining`) once it drains, and so does leaving a call that was aborted.
    """

    def __init__(self) -> None:
        self.draining = False
        self._aborting = False
        self._inside: set[asyncio.Task[Any]] = set()
        self._empty = asyncio.Event()

    def __len__(self) -> int:
        return len(self._inside)

    def around(self, task: asyncio.Task[Any]) -> AbstractContextManager[None]:
        """Counts `task`, the current one, inside it. In Python 3.11 looking it up takes a system call."""
        return _Passage(self, task)

    def enter(self, task: asyncio.Task[Any]) -> None:
        """Count a task, or raise."""
        if self.draining:
            raise draining_error()
        self._inside.add(task)

    def leave(self, task: asyncio.Task[Any]) -> None:
        """Count a task no longer."""
        self._inside.discard(task)
        if self.draining and not self._inside:
            self._empty.set()

    def was_aborted(self, task: asyncio.Task[Any]) -> bool:
        """Whether `abort` caused the cancellation that the current task has caught; if so, undo it."""
        return self._aborting and task.uncancel() == 0

    async def drain(self, seconds: float) -> bool:
        """Admit no call and wait until all have left, at most `seconds`; whether they have."""
        self.draining = True
        if not self._inside:
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        return not self._inside

    async def abort(self, seconds: float) -> int:
        """Cancel the calls inside and wait until they have answered, at most `seconds`. Returns their number."""
        self._aborting = True
        late = list(self._inside)
        for task in late:
            task.cancel()
        await self.drain(seconds)
        return len(late)


class _Passage:
    __slots__ = ("_gate", "_task")

    def __init__(self, gate: DrainGate, task: asyncio.Task[Any]) -> None:
        self._gate = gate
        self._task = task

    def __enter__(self) -> None:
        self._gate.enter(self._task)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate.leave(self._task)
        if kind is asyncio.CancelledError and self._gate.was_aborted(self._task):
            raise draining_error() from None


def current_task(loop: asyncio.AbstractEventLoop | None = None) -> asyncio.Task[Any]:
    """The current task. `loop`: the running one, if known."""
    task = asyncio.current_task(loop)
    assert task is not None  # noqa: S101
    return task


def draining_error() -> Unavailable:
    """The error of a request while the process ends."""
    return Unavailable("This gateway is shutting down.", code="draining", retry_after=1.0)
