"""Serving asynchronous functions: one event loop on the main thread reads, runs calls and answers.

Synchronous methods beside asynchronous ones run in threads, so that they do not block the loop.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.async_work_runner import run_async_work
from pilotlight_runtime.guest.call_table import CallProgress, CallTable
from pilotlight_runtime.guest.frames import (
    BatchResult,
    CancelCall,
    GuestFrame,
    GuestWork,
    Leave,
    Load,
    Result,
    WindowUpdate,
)
from pilotlight_runtime.guest.guest_target import GuestTarget
from pilotlight_runtime.guest.loading import await_hook, load_async, reported, send_loaded
from pilotlight_runtime.guest.threaded_server import MAX_THREADS
from pilotlight_runtime.guest.work_runner import run_work


def serve(load: Load, channel: Channel) -> None:
    """Load a function and serve it within one event loop, including its hooks.

    Raises:
        NotLoaded
    """
    asyncio.run(_serve(load, channel))


async def _serve(load: Load, channel: Channel) -> None:
    target = await load_async(load, channel)
    send_loaded(channel)
    await AsyncServer(channel, target, load.spec.max_inputs).serve()
    for hook in target.exit:
        with reported():
            await await_hook(hook)


class AsyncServer:
    """Serves a target until Leave. A batch counts as one input."""

    def __init__(self, channel: Channel, target: GuestTarget, max_inputs: int) -> None:
        self._channel = channel
        self._target = target
        self._table = CallTable()
        self._waiting: deque[GuestWork] = deque()
        self._running = 0
        self._most = max_inputs
        self._left = asyncio.Event()
        self._pool = ThreadPoolExecutor(min(max_inputs, MAX_THREADS), "pilotlight")

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as self._group:
            loop.add_reader(self._channel.fileno(), self._read)
            self._read()  # frames that came behind the Load
            await self._left.wait()
            loop.remove_reader(self._channel.fileno())

    def send(self, frame: GuestFrame) -> None:
        self._channel.send(frame)

    def read_cancels(self) -> None:
        pass  # the event loop does, on its own thread

    def wait_read(self, progress: CallProgress, seq: int) -> bool:
        return progress.wait_read(seq)

    def _read(self) -> None:
        with exits.with_agent():
            for frame in self._channel.receive_nowait():
                self._take(frame)

    def _take(self, frame: GuestFrame) -> None:
        if isinstance(frame, GuestWork):
            self._table.take(frame)
            self._waiting.append(frame)
            self._start()
        elif isinstance(frame, CancelCall | WindowUpdate):
            unstarted = self._table.apply(frame)
            if unstarted is not None:
                self._channel.send(unstarted)
        elif isinstance(frame, Leave):
            self._left.set()

    def _start(self) -> None:
        while self._waiting and self._running < self._most:
            self._running += 1
            self._group.create_task(self._work(self._waiting.popleft()))

    async def _work(self, work: GuestWork) -> None:
        with exits.with_agent():
            frame = await self._answer(work)
            if frame is not None:
                self._channel.send(frame)
                exits.exit_if_fatal(frame)
        self._running -= 1
        self._start()

    async def _answer(self, work: GuestWork) -> Result | BatchResult | None:
        method = self._target.methods.get(work.method)
        if method is None or method.is_async:
            return await run_async_work(self._target, work, self._table, self._channel.send)
        run = partial(contextvars.copy_context().run, run_work, self._target, work, self._table, self)
        return await asyncio.get_running_loop().run_in_executor(self._pool, run)
