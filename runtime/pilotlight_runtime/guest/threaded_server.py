"""Serving synchronous functions, several calls at a time: the main thread reads, other threads work."""

from __future__ import annotations

import contextvars
import threading
from queue import SimpleQueue

from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.call_table import CallProgress, CallTable
from pilotlight_runtime.guest.drain_hooks import DrainHooks
from pilotlight_runtime.guest.frames import (
    CancelCall,
    DrainGuest,
    GuestFrame,
    GuestWork,
    Leave,
    NestedResult,
    WindowUpdate,
)
from pilotlight_runtime.guest.guest_nested import GuestNested
from pilotlight_runtime.guest.guest_target import GuestTarget
from pilotlight_runtime.guest.late_sender import LateSender
from pilotlight_runtime.guest.own_calls import RunHook
from pilotlight_runtime.guest.park_hooks import ParkWork, run_park_hooks
from pilotlight_runtime.guest.work_runner import run_work

MAX_THREADS = 128
"""A sandbox's limit of processes and threads leaves the tenant's own libraries the other half."""


class ThreadedServer:
    """Serves a target until Leave."""

    def __init__(
        self,
        channel: Channel,
        target: GuestTarget,
        nested: GuestNested,
        max_inputs: int,
        wait: RunHook,
        draining: DrainHooks,
    ) -> None:
        """`wait` runs an asynchronous hook to its end."""
        self._channel = channel
        self._late = LateSender(channel)
        self._wait = wait
        self._target = target
        self._table = CallTable()
        self._nested = nested
        self._draining = draining
        nested.only_call = self._table.only_begun
        self._queue: SimpleQueue[GuestWork] = SimpleQueue()
        self._most = min(max_inputs, MAX_THREADS)
        self._threads = 0
        self._left = False

    def serve(self) -> None:
        with exits.with_agent(), exits.flushed_before_exit(self._channel):
            while not self._left:
                for frame in self._channel.receive():
                    self._take(frame)

    def send(self, frame: GuestFrame) -> None:
        self._channel.send(frame)

    def send_soon(self, frame: GuestFrame) -> None:
        self._late.send(frame)

    def read_cancels(self) -> None:
        pass  # the main thread does

    def wait_read(self, progress: CallProgress, seq: int) -> bool:
        return progress.wait_read(seq)

    def _take(self, frame: GuestFrame) -> None:
        if isinstance(frame, GuestWork):
            self._table.take(frame)
            self._queue.put(frame)
            self._add_thread()
        elif isinstance(frame, CancelCall | WindowUpdate):
            unstarted = self._table.apply(frame)
            if unstarted is not None:
                self._channel.send(unstarted)
        elif isinstance(frame, NestedResult):
            self._nested.finish(frame)
        elif isinstance(frame, ParkWork):
            self._channel.send(run_park_hooks(self._target, frame, self._wait))
        elif isinstance(frame, DrainGuest):
            self._draining.start()
        elif isinstance(frame, Leave):
            self._left = True

    def _add_thread(self) -> None:
        if self._threads >= min(self._most, self._table.held):
            return
        try:
            threading.Thread(target=self._work, name="pilotlight", daemon=True).start()
            self._threads += 1
        except RuntimeError:  # the sandbox allows no more threads: the present ones do the work
            if not self._threads:
                raise

    def _work(self) -> None:
        with exits.with_agent():
            while True:
                work = self._queue.get()
                # The next call must not see a call's context variables.
                frame = contextvars.copy_context().run(run_work, self._target, work, self._table, self)
                if frame is not None:
                    self._channel.send(frame)
                    exits.exit_if_fatal(frame, self._channel.flush)
