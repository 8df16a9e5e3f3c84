"""The portal: an event loop in a background thread, which makes all calls of the process.

So calls share connections. A caller that leaves (Ctrl-C, a cancelled task, a loop's `break`) cancels the call's task;
that closes its connection, and the platform cancels the call.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import aclosing, suppress
from typing import Any, Generic, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from pilotlight.definitions.errors import Cancelled, PilotlightError

T = TypeVar("T")

AWAKE_S = 1.0
"""How often a waiting thread looks up: an interrupt that comes just before it begins to wait does not wake it."""
GOODBYE_S = 2.0
"""How long a caller that leaves waits for its task."""
LEFT = "The call was left before it was answered."
AHEAD = 64
"""Items read before they are needed."""


class SharedPortal:
    """A BlockingPortal in a daemon thread.

    `start_blocking_portal` would wait for that thread in a forked child, which has none.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        ready: Future[BlockingPortal] = Future()
        self._thread = threading.Thread(target=self._serve, args=(ready,), name="pilotlight", daemon=True)
        self._thread.start()
        self._portal = ready.result()

    @property
    def is_alive(self) -> bool:
        """Whether it serves this process; a forked child lacks the thread."""
        return self._process == os.getpid() and self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`. An interrupt cancels it, and waits for its end.

        Raises:
            RuntimeError: in the portal's own thread.
        """
        self._check_thread(work)
        task = PortalTask(work, self._loop)
        try:
            task.begin(self._portal)
            return _result_of(task.future)
        except PilotlightError as error:
            raise _without_frames(error) from error.__cause__
        except BaseException:
            task.leave()
            raise

    async def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        task = PortalTask(work, self._loop)
        try:
            return await self._portal.call_async(task.run, abandon_on_cancel=True)
        except PilotlightError as error:
            raise _without_frames(error) from error.__cause__
        except BaseException:
            task.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, T]) -> PortalTask[T]:
        """Begin `work`; the caller ends it with `leave()`."""
        task = PortalTask(work, self._loop)
        task.begin(self._portal)
        return task

    def iterate(self, source: AsyncGenerator[T, None]) -> Iterator[T]:
        """Iterate over `source`, which ends when the caller leaves."""
        reader = _Reader(source)
        task = PortalTask(reader.run(), self._loop)
        try:
            task.begin(self._portal)
            while items := self._portal.call(reader.next_items):
                yield from items
            reader.check()
        finally:
            task.leave()

    async def iterate_async(self, source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        reader = _Reader(source)
        task = PortalTask(reader.run(), self._loop)
        try:
            task.begin(self._portal)
            while items := await self._portal.call_async(reader.next_items, abandon_on_cancel=True):
                for item in items:
                    yield item
            reader.check()
        finally:
            task.cancel()

    def close(self) -> None:
        """Cancel all work and end the thread, within `GOODBYE_S`."""
        if self.is_alive:
            self._loop.call_soon_threadsafe(self._end)
            self._thread.join(GOODBYE_S)

    def _serve(self, ready: Future[BlockingPortal]) -> None:
        try:
            anyio.run(self._main, ready)
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    async def _main(self, ready: Future[BlockingPortal]) -> None:
        self._loop, self._server = asyncio.get_running_loop(), asyncio.current_task()
        self._closing = asyncio.Event()
        async with BlockingPortal() as portal:
            ready.set_result(portal)
            await self._closing.wait()

    def _end(self) -> None:
        for task in asyncio.all_tasks(self._loop) - {self._server}:
            task.cancel()
        self._closing.set()

    def _check_thread(self, work: Coroutine[Any, Any, Any]) -> None:
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a blocking call cannot be made from a callback of another: use .aio, or a thread.")


class PortalTask(Generic[T]):
    """A coroutine in the portal; its `future` is done once it has ended.

    It is cancelled once, by `cancel`: a cancelled future or scope would cancel each wait of its clean-up, too.
    """

    def __init__(self, work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self.future: Future[T] = Future()
        self._work = work
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        self._is_left = False

    def begin(self, portal: BlockingPortal) -> None:
        self.future = portal.start_task_soon(self.run)

    def cancel(self) -> None:
        if not self.future.done():
            with suppress(RuntimeError):  # the portal is closed, and so it has ended
                self._loop.call_soon_threadsafe(self._stop)

    def leave(self) -> None:
        """Cancel it, and wait for its end for at most `GOODBYE_S`."""
        self.cancel()
        wait([self.future], GOODBYE_S)

    async def run(self) -> T:
        """Run the coroutine.

        Raises:
            Cancelled: if it was cancelled.
        """
        self._task = asyncio.current_task()
        if self._is_left:
            self._work.close()
            raise Cancelled(LEFT)
        try:
            with anyio.CancelScope(shield=True):
                result = await self._work
            return result  # noqa: RET504 - after the scope, which type checkers take for one that swallows
        except asyncio.CancelledError:
            raise Cancelled(LEFT) from None

    def _stop(self) -> None:
        self._is_left = True
        if self._task is not None:
            self._task.cancel()


class _Reader(Generic[T]):
    """Reads a source in one task, which owns the resources of the source."""

    def __init__(self, source: AsyncGenerator[T, None]) -> None:
        self._source = source
        self._arrived: asyncio.Queue[Any] = asyncio.Queue()
        self._room = asyncio.Semaphore(AHEAD)
        self._given = 0
        self._ended = False
        self._error: BaseException | None = None

    async def run(self) -> None:
        """Read to the end; keep an error of the source for `check`."""
        try:
            async with aclosing(self._source):
                async for item in self._source:
                    await self._room.acquire()
                    self._arrived.put_nowait(item)
        except asyncio.CancelledError:
            self._error = Cancelled(LEFT)
            raise
        except Exception as error:  # noqa: BLE001 - it is raised again where the items are read
            self._error = error
        finally:
            self._arrived.put_nowait(_END)

    async def next_items(self) -> list[T]:
        """Wait for items after the last ones are used up; none: the source has ended."""
        for _ in range(self._given):
            self._room.release()
        items: list[Any] = [] if self._ended else [await self._arrived.get()]
        while not self._arrived.empty():
            items.append(self._arrived.get_nowait())
        if items and items[-1] is _END:
            items.pop()
            self._ended = True
        self._given = len(items)
        return items

    def check(self) -> None:
        """Raise the error that ended the source, if any."""
        if self._error is not None:
            raise _without_frames(self._error) from self._error.__cause__


_END = object()


def _result_of(future: Future[T]) -> T:
    while not future.done():
        with suppress(TimeoutError):
            return future.result(AWAKE_S)
    return future.result()


def _without_frames(error: BaseException) -> BaseException:
    """Drop the frames of a platform's error that hide its cause."""
    return error.with_traceback(None) if isinstance(error, PilotlightError) else error


_portal: SharedPortal | None = None
_lock = threading.Lock()


def shared_portal() -> SharedPortal:
    """Return the process's portal, which the first call starts; a forked child starts its own."""
    global _portal
    with _lock:
        if _portal is None or not _portal.is_alive:
            _portal = SharedPortal()
            atexit.register(_portal.close)
        return _portal
