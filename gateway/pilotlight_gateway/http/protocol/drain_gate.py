"""Counts the calls under way, so that the process can end without cutting them off."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol

from pilotlight_core.model.errors import Unavailable


class Inside(Protocol):
    """A call inside the gate: a task, or a `WarmCall`, which needs none."""

    def cancel(self) -> object:
        """End it, with an answer."""
        ...


class DrainGate:
    """Counts the calls inside: each runs in `with gate.around(task)`, or calls `enter` and `leave`.

    Entering raises Unavailable (`draining`) once it drains, and so does leaving a call that was aborted.
    """

    def __init__(self) -> None:
        self.leaving = False
        """Whether the process will end: who asks is told that it is not ready, and calls are still taken."""
        self.draining = False
        self._aborting = False
        self._inside: set[Inside] = set()
        self._empty = asyncio.Event()

    def __len__(self) -> int:
        return len(self._inside)

    def around(self, task: asyncio.Task[Any]) -> AbstractContextManager[None]:
        """Counts `task`, the current one, inside it. In Python 3.11 looking it up takes a system call."""
        return _Passage(self, task)

    def succeed(self, one: Inside, task: asyncio.Task[Any]) -> AbstractContextManager[None]:
        """Counts `task`, the current one, in the place of `one`, which is inside: draining does not refuse it."""
        return _Passage(self, task, one)

    def enter(self, one: Inside) -> None:
        """Count a call, or raise."""
        if self.draining:
            raise draining_error()
        self._inside.add(one)

    def replace(self, former: Inside, one: Inside) -> None:
        """Count a call in the place of another."""
        self._inside.add(one)
        self._inside.discard(former)

    def leave(self, one: Inside) -> None:
        """Count a call no longer."""
        self._inside.discard(one)
        if self.draining and not self._inside:
            self._empty.set()

    def was_aborted(self, task: asyncio.Task[Any]) -> bool:
        """Whether `abort` caused the cancellation that the current task has caught; if so, undo it."""
        return self._aborting and task.uncancel() == 0

    async def drain(self, seconds: float) -> bool:
        """Admit no call and wait until all have left, at most `seconds`; whether they have."""
        self.leaving = self.draining = True
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
        for one in late:
            one.cancel()
        await self.drain(seconds)
        return len(late)


class _Passage:
    __slots__ = ("_former", "_gate", "_task")

    def __init__(self, gate: DrainGate, task: asyncio.Task[Any], former: Inside | None = None) -> None:
        self._gate = gate
        self._task = task
        self._former = former

    def __enter__(self) -> None:
        if self._former is None:
            self._gate.enter(self._task)
        else:
            self._gate.replace(self._former, self._task)
            self._former = None

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
