"""The gate that calls pass, so that the process can end without cutting them off."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from pilotlight_core.model.errors import Unavailable


class DrainGate:
    """Counts the calls inside: `with gate.around(task)` in each. Once it drains, none enters; `abort` ends who is left.

    Entering raises Unavailable (`draining`) when it drains, and so does leaving a call that was aborted.
    """

    def __init__(self) -> None:
        self.draining = False
        self._aborting = False
        self._inside: set[asyncio.Task[Any]] = set()
        self._empty = asyncio.Event()

    def __len__(self) -> int:
        return len(self._inside)

    def around(self, task: asyncio.Task[Any]) -> AbstractContextManager[None]:
        """What the current task is inside of; looking it up takes a system call in Python 3.11, so it is passed."""
        return _Passage(self, task)

    def enter(self, task: asyncio.Task[Any]) -> None:
        """Let a task in."""
        if self.draining:
            raise draining_error()
        self._inside.add(task)

    def leave(self, task: asyncio.Task[Any]) -> None:
        """It is not inside any more."""
        self._inside.discard(task)
        if self.draining and not self._inside:
            self._empty.set()

    def was_aborted(self, task: asyncio.Task[Any]) -> bool:
        """Whether the cancellation that the current task just caught was `abort`'s; if so, it is taken back."""
        return self._aborting and task.uncancel() == 0

    async def drain(self, seconds: float) -> bool:
        """Let no call in and wait until all have left, at most `seconds`; whether they have."""
        self.draining = True
        if not self._inside:
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        return not self._inside

    async def abort(self, seconds: float) -> int:
        """Cancel those still inside and wait for them to answer, at most `seconds`; how many there were."""
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
    """The task that we are in: a server runs every request in one. `loop`: the running one, if that is at hand."""
    task = asyncio.current_task(loop)
    assert task is not None  # noqa: S101
    return task


def draining_error() -> Unavailable:
    """What a caller hears while the process ends."""
    return Unavailable("This gateway is shutting down.", code="draining", retry_after=1.0)
