"""The thin blocking face over the async core: one event loop in a background thread for all of a process's calls.

Async callers come through here too, so that there is one pool of connections whatever loops they run, and leaving a
call (Ctrl-C, a cancelled task, a broken-off loop) ends it the same way: its task is cancelled, which closes its
connection, which cancels the call at the platform.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import queue
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from typing import Any, Generic, TypeVar

from pilotlight.errors import Cancelled, PilotlightError

T = TypeVar("T")

GOODBYE_S = 2.0
"""How long a caller that leaves waits for the platform to be told."""
LEFT = "The call was left before it was answered."
AHEAD = 64
"""Items that a stream may be ahead of its reader before it is no longer read from the network."""


class Face:
    """A running event loop in a daemon thread."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="pilotlight", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it serves this process: a forked child has no such thread."""
        return self.process == os.getpid() and self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, waited for. An interrupt cancels it and gives it a moment to say goodbye."""
        self._check_not_inside(work)
        task: Task[T] = Task(self._loop, work)
        try:
            task.begin()
            return task.result.result()
        except PilotlightError as error:
            raise _shortened(error) from error.__cause__
        except BaseException:
            task.abandon()
            raise

    def start(self, work: Coroutine[Any, Any, T]) -> Task[T]:
        """Begin `work`; whoever starts it ends it, with `abandon()`."""
        task: Task[T] = Task(self._loop, work)
        task.begin()
        return task

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, for a caller in an event loop of its own."""
        task: Task[T] = Task(self._loop, work)
        try:
            task.begin()
            return await asyncio.wrap_future(task.result)
        except PilotlightError as error:
            raise _shortened(error) from error.__cause__
        finally:
            task.cancel()

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """The items of `source`; it starts with the first one that is asked for, and ends when the caller leaves."""
        arrived: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        room = asyncio.Semaphore(AHEAD)
        task = Task(self._loop, _pump(source, room, arrived.put))
        try:
            task.begin()
            while (item := arrived.get()).value is not _END:
                self._loop.call_soon_threadsafe(room.release)
                yield item.take()
        finally:
            task.abandon()

    async def aiterate(self, source: AsyncIterator[T]) -> AsyncIterator[T]:
        """The items of `source`, for a caller in an event loop of its own."""
        here = asyncio.get_running_loop()
        arrived: asyncio.Queue[_Item] = asyncio.Queue()
        room = asyncio.Semaphore(AHEAD)
        task = Task(self._loop, _pump(source, room, lambda item: here.call_soon_threadsafe(arrived.put_nowait, item)))
        try:
            task.begin()
            while (item := await arrived.get()).value is not _END:
                self._loop.call_soon_threadsafe(room.release)
                yield item.take()
        finally:
            task.cancel()

    def close(self) -> None:
        """End what still runs, and the thread."""
        if self.is_alive:
            asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop)
            self._thread.join(GOODBYE_S)

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _check_not_inside(self, work: Coroutine[Any, Any, Any]) -> None:
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a blocking call cannot be made from a callback of another: use .aio, or a thread.")


class _Item:
    """A value, an error, or the end of a stream."""

    __slots__ = ("error", "value")

    def __init__(self, value: Any = None, error: BaseException | None = None) -> None:
        self.value = value
        self.error = error

    def take(self) -> Any:
        if self.error is not None:
            raise _shortened(self.error) from self.error.__cause__
        return self.value


_END: Any = object()


def _shortened(error: BaseException) -> BaseException:
    """Without the frames below the face: where in the client an error of the wire was read tells nobody anything."""
    return error.with_traceback(None) if isinstance(error, PilotlightError) else error


class Task(Generic[T]):
    """A coroutine in the background loop. `result` is done only when it has really ended.

    It is made first and begun inside a `try`, so that an interrupt finds either nothing begun or something to end.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> None:
        self._loop = loop
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self.result: Future[T] = Future()
        self.result.set_running_or_notify_cancel()  # from here on only the task's own end settles it

    def begin(self) -> None:
        """Let it run."""
        self._loop.call_soon_threadsafe(self._start)

    def cancel(self) -> None:
        """Cancel it, unless it has ended."""
        if not self.result.done():
            self._loop.call_soon_threadsafe(self._stop)

    def abandon(self) -> None:
        """Cancel it and wait a bounded time for its end."""
        self.cancel()
        wait([self.result], GOODBYE_S)

    def _start(self) -> None:
        if not self.result.done():
            self._task = self._loop.create_task(self._work)
            self._task.add_done_callback(self._finish)

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        elif not self.result.done():
            self._work.close()
            self.result.set_exception(Cancelled(LEFT))

    def _finish(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.result.set_exception(Cancelled(LEFT))
        elif error := task.exception():
            self.result.set_exception(error)
        else:
            self.result.set_result(task.result())


async def _pump(source: AsyncIterator[Any], room: asyncio.Semaphore, put: Callable[[_Item], object]) -> None:
    try:
        async for value in source:
            await room.acquire()
            put(_Item(value))
    except asyncio.CancelledError:
        put(_Item(error=Cancelled(LEFT)))
        raise
    except Exception as error:  # noqa: BLE001 - it is raised again where the items are read
        put(_Item(error=error))
    else:
        put(_Item(_END))
    finally:
        await _close(source)


async def _close(source: AsyncIterator[Any]) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()


async def _cancel_all() -> None:
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop.stop()


_face: Face | None = None
_lock = threading.Lock()


def face() -> Face:
    """The process's face, started by its first call."""
    global _face
    with _lock:
        if _face is None or not _face.is_alive:
            _face = Face()
            atexit.register(_face.close)
        return _face
