"""A thread for calls that may never return, with a bound on the wait for them.

A hanging driver cannot be interrupted. `asyncio.to_thread` joins its threads before the process ends, so one such call
would keep the agent from ending; this thread is left behind instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class BoundedThread:
    """Makes one call at a time, in order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._turn = asyncio.Lock()
        self._free = asyncio.Event()  # the thread waits for a job
        self._free.set()

    async def call(self, function: Callable[[], T], within_s: float) -> T:
        """The result of `function`; TimeoutError if it takes longer than `within_s`.

        An earlier call that still hangs counts against that time.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        async with asyncio.timeout(within_s), self._turn:
            await self._free.wait()
            self._free.clear()
            self._jobs.put(lambda: self._run(function, answer, loop))
            return await answer

    def close(self) -> None:
        """End the thread after its last call."""
        self._jobs.put(None)

    # -- in the thread ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _run(self, function: Callable[[], T], answer: asyncio.Future[T], loop: asyncio.AbstractEventLoop) -> None:
        try:
            value = function()
            tell: Callable[[], Any] = lambda: answer.set_result(value)  # noqa: E731
        except Exception as error:  # noqa: BLE001 - it is raised again where it was asked for
            raised = error
            tell = lambda: answer.set_exception(raised)  # noqa: E731
        with contextlib.suppress(RuntimeError):  # the loop is closed: there is no waiting task
            loop.call_soon_threadsafe(self._deliver, answer, tell)

    def _deliver(self, answer: asyncio.Future[Any], tell: Callable[[], Any]) -> None:
        self._free.set()
        if not answer.done():
            tell()
