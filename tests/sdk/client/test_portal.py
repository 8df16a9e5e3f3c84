"""The shared portal: threads, interrupts, forks, event loops of the caller's own."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
import trio

from pilotlight.client.portal import AHEAD, SharedPortal, shared_portal
from pilotlight.definitions.errors import Cancelled


class Endless:
    """Numbers without end; knows how many were taken, and whether it was closed."""

    def __init__(self) -> None:
        self.taken = 0
        self.closed = threading.Event()

    async def numbers(self) -> AsyncGenerator[int, None]:
        try:
            while True:
                self.taken += 1
                yield self.taken
                await asyncio.sleep(0)
        finally:
            self.closed.set()


async def forever(began: threading.Event, ended: threading.Event) -> None:
    began.set()
    try:
        await asyncio.Event().wait()
    finally:
        ended.set()


def test_an_interrupt_cancels_the_work() -> None:
    """Ctrl-C ends the call and not only the wait."""
    began, ended = threading.Event(), threading.Event()

    def interrupt() -> None:
        began.wait(30)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    # What another test has left as the handler would swallow it, and this one would wait for ever.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            shared_portal().run(forever(began, ended))
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.wait(30)


def test_a_stream_runs_ahead_by_a_bound_and_is_closed_when_left() -> None:
    """An abandoned iterator closes its source."""
    source = Endless()
    numbers = shared_portal().iterate(source.numbers())
    assert [next(numbers) for _ in range(3)] == [1, 2, 3]
    del numbers
    assert source.closed.wait(5)
    assert source.taken <= AHEAD + 5


async def test_an_async_stream_is_bounded_and_closed_too() -> None:
    """This holds in a loop of the caller."""
    source = Endless()
    async for number in shared_portal().iterate_async(source.numbers()):
        if number == 3:
            break
    assert await asyncio.to_thread(source.closed.wait, 5)
    assert source.taken <= AHEAD + 5


def test_a_caller_may_run_trio() -> None:
    """The portal's own loop makes the call and reads the stream."""

    async def main() -> list[object]:
        answer = await shared_portal().run_async(asyncio.sleep(0, "done"))
        numbers = shared_portal().iterate_async(Endless().numbers())
        async with aclosing(numbers):
            return [answer, await anext(numbers)]

    assert trio.run(main) == ["done", 1]


async def test_cancelling_an_async_wait_cancels_the_work() -> None:
    """The work runs in the portal's loop, not in the caller's."""
    began, ended = threading.Event(), threading.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(shared_portal().run_async(forever(began, ended)))
        await asyncio.to_thread(began.wait, 5)
        task.cancel()
    assert await asyncio.to_thread(ended.wait, 5)


async def test_cancelling_an_async_wait_lets_the_work_clean_up() -> None:
    """The waits of the clean-up are not cancelled, too."""
    began, cleaned = threading.Event(), threading.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            await asyncio.sleep(0.01)
            cleaned.set()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(shared_portal().run_async(work()))
        await asyncio.to_thread(began.wait, 5)
        task.cancel()
    assert await asyncio.to_thread(cleaned.wait, 5)


def test_errors_come_through() -> None:
    """An error is raised as it is."""

    async def fail() -> None:
        raise ValueError("no")

    async def fail_after_one() -> AsyncGenerator[int, None]:
        yield 1
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        shared_portal().run(fail())
    numbers = shared_portal().iterate(fail_after_one())
    assert next(numbers) == 1
    with pytest.raises(ValueError, match="no"):
        next(numbers)


def test_closing_cancels_the_work() -> None:
    """Its callers get an error."""
    own = SharedPortal()
    began, ended = threading.Event(), threading.Event()
    task = own.start(forever(began, ended))
    assert began.wait(5)
    own.close()
    with pytest.raises(Cancelled):
        task.future.result(5)
    assert not own.is_alive
    own.close()


def test_a_forked_child_gets_a_portal_of_its_own() -> None:
    """The thread of the parent does not exist in the child."""
    parent = shared_portal()
    assert shared_portal() is parent
    pid = os.fork()
    if pid == 0:  # pragma: no cover - in the child
        answer = 1
        try:
            answer = shared_portal().run(asyncio.sleep(0, 0)) if shared_portal() is not parent else 1
        finally:
            os._exit(answer)
    assert os.waitpid(pid, 0)[1] == 0
