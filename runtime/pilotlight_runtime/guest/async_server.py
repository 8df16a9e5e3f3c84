"""Serving asynchronous functions: one event loop on the main thread reads, runs calls and answers.

Synchronous methods beside asynchronous ones run in threads, so that they do not block the loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from pilotlight_core.model.messages.running_code import IN_HOOK, RUNNING_CALL
from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.async_work_runner import run_async_work
from pilotlight_runtime.guest.call_table import CallProgress, CallTable
from pilotlight_runtime.guest.frames import (
    BatchResult,
    CancelCall,
    DrainGuest,
    DrainHooksEnded,
    GuestFrame,
    GuestWork,
    Leave,
    Load,
    NestedResult,
    Result,
    WindowUpdate,
)
from pilotlight_runtime.guest.guest_nested import GuestNested
from pilotlight_runtime.guest.guest_target import GuestTarget
from pilotlight_runtime.guest.late_sender import LateSender
from pilotlight_runtime.guest.loading import await_hook, load_async, reported, send_loaded
from pilotlight_runtime.guest.park_hooks import ParkWork, await_park_hooks
from pilotlight_runtime.guest.threaded_server import MAX_THREADS
from pilotlight_runtime.guest.turn_sender import TurnSender
from pilotlight_runtime.guest.work_runner import run_work

QUICK_NS = 200_000
"""An answer waits at most for calls that took so long together, and for the one that runs."""


def serve(load: Load, channel: Channel) -> None:
    """Load a function and serve it within one event loop, including its hooks.

    Raises:
        NotLoaded
    """
    asyncio.run(_serve(load, channel))


async def _serve(load: Load, channel: Channel) -> None:
    nested = GuestNested(channel, load)
    nested.loop_thread = threading.get_ident()
    target = await load_async(load, channel, nested)
    send_loaded(channel, target)
    await AsyncServer(channel, target, nested, load.spec.max_inputs).serve()
    for hook in target.exit:
        with reported():
            await await_hook(hook)


class AsyncServer:
    """Serves a target until Leave. A batch counts as one input.

    Answers of one turn of the loop go in groups, since sending costs more than a small call. An answer waits only for
    calls that run in the same turn, and while those of its group took less than QUICK_NS together. If one of them ends
    the process meanwhile, the group goes first, unless the process is killed by a signal.
    """

    def __init__(self, channel: Channel, target: GuestTarget, nested: GuestNested, max_inputs: int) -> None:
        self._channel = channel
        self._target = target
        self._table = CallTable()
        self._nested = nested
        nested.only_call = self._table.only_begun
        self._waiting: deque[GuestWork] = deque()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        """What runs, by its number."""
        self._started = 0
        self._most = max_inputs
        self._left = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._kept_ns = 0
        """How long the calls ran whose answers are kept."""
        self._is_flush_due = False
        self._pool = ThreadPoolExecutor(min(max_inputs, MAX_THREADS), "pilotlight")
        self._draining: asyncio.Task[None] | None = None
        self._late = LateSender(channel)
        self._turns = TurnSender(channel, self._loop)

    async def serve(self) -> None:
        with exits.flushed_before_exit(self._channel):
            self._loop.add_reader(self._channel.fileno(), self._read)
            self._read()  # frames that came behind the Load
            await self._left.wait()
            self._loop.remove_reader(self._channel.fileno())
            while self._tasks:
                await asyncio.wait(list(self._tasks.values()))
            self._flush()
            if self._draining is not None:
                await self._draining

    def send(self, frame: GuestFrame) -> None:
        self._channel.send(frame)

    def send_soon(self, frame: GuestFrame) -> None:
        self._late.send(frame)

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
        elif isinstance(frame, NestedResult):
            self._nested.finish(frame)
        elif isinstance(frame, ParkWork):
            self._started += 1
            self._tasks[self._started] = self._loop.create_task(self._run_hooks(self._started, frame))
        elif isinstance(frame, DrainGuest):
            self._draining = self._draining or self._loop.create_task(self._drain())
        elif isinstance(frame, Leave):
            self._left.set()

    async def _run_hooks(self, number: int, asked: ParkWork) -> None:
        with exits.with_agent():
            self._channel.send(await await_park_hooks(self._target, asked))
        del self._tasks[number]

    async def _drain(self) -> None:
        """Run the drain hooks beside the calls: plain ones in a thread."""
        RUNNING_CALL.set(IN_HOOK)
        with exits.with_agent():
            for hook in self._target.drain:
                with reported():
                    answer = hook() if inspect.iscoroutinefunction(hook) else asyncio.to_thread(hook)
                    await answer
            self._channel.send(DrainHooksEnded())

    def _start(self) -> None:
        while self._waiting and len(self._tasks) < self._most:
            self._started += 1
            # `serve` waits for them; a TaskGroup would cost each call a callback.
            self._tasks[self._started] = self._loop.create_task(self._work(self._started, self._waiting.popleft()))

    async def _work(self, number: int, work: GuestWork) -> None:
        with exits.with_agent():
            method = self._target.methods.get(work.method)
            if method is None or method.is_async:
                task = self._tasks[number]
                frame = await run_async_work(self._target, work, self._table, self._turns, task)
            else:
                run = partial(contextvars.copy_context().run, run_work, self._target, work, self._table, self)
                frame = await self._loop.run_in_executor(self._pool, run)
            if frame is not None:
                self._answer(frame)
        del self._tasks[number]
        if self._waiting:
            self._start()

    def _answer(self, frame: Result | BatchResult) -> None:
        self._kept_ns += frame.execute_ns
        if type(frame) is Result and frame.error is None and self._kept_ns < QUICK_NS and len(self._tasks) > 1:
            self._channel.keep(frame)
            if not self._is_flush_due:
                self._is_flush_due = True
                self._loop.call_soon(self._flush)
            return
        self._kept_ns = 0
        self._channel.send(frame)
        exits.exit_if_fatal(frame, self._channel.flush)

    def _flush(self) -> None:
        self._is_flush_due, self._kept_ns = False, 0
        with exits.with_agent():
            self._channel.flush()
