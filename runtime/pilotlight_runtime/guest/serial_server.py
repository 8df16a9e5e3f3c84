"""Serving synchronous functions, one call at a time, on the main thread.

So signals, thread-local state and the device's context are as in a script, and a call costs no change of threads. The
socket is read between calls, between the chunks of a stream, and before an answer. Once the function has called another
one, for whose answer its thread may wait, a thread of its own reads.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections import deque

from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.call_table import WINDOW_WAIT_S, CallProgress, CallTable
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

READER_LOOK_S = 0.25
"""Between two looks whether another thread has begun to read what a stream waits for."""


class SerialServer:
    """Serves a target until Leave."""

    def __init__(
        self, channel: Channel, target: GuestTarget, nested: GuestNested, wait: RunHook, draining: DrainHooks
    ) -> None:
        """`wait` runs an asynchronous hook to its end."""
        self._channel = channel
        self._late = LateSender(channel)
        self._wait = wait
        self._target = target
        self._table = CallTable()
        self._queue: deque[GuestWork | ParkWork] = deque()
        self._left = False
        self._nested = nested
        self._draining = draining
        nested.only_call = self._table.only_begun
        nested.need_reader = self._start_reader
        self._reading = threading.Lock()
        """Held by the one thread that reads the socket."""
        self._arrived = threading.Condition()
        self._has_reader = False

    def serve(self) -> None:
        if self._target.drain:
            self._start_reader()  # they run beside a call
        with exits.with_agent(), exits.flushed_before_exit(self._channel):
            while self._queue or not self._left:
                self._receive()
                if self._queue:
                    self._run(self._queue.popleft())

    def _receive(self) -> None:
        """Take what has arrived, and wait if there is nothing to do."""
        if not self._has_reader and self._reading.acquire(blocking=False):
            try:
                frames = self._channel.receive_nowait() if self._queue else self._channel.receive()
                for frame in frames:
                    self._take(frame)
            finally:
                self._reading.release()
            return
        with self._arrived:
            self._arrived.wait_for(lambda: self._queue or self._left)

    def _start_reader(self) -> None:
        with self._arrived:
            if self._has_reader:
                return
            threading.Thread(target=self._read_on, name="pilotlight", daemon=True).start()
            self._has_reader = True

    def _read_on(self) -> None:
        with exits.with_agent():
            while True:
                with self._reading:
                    frames = self._channel.receive()
                with self._arrived:
                    for frame in frames:
                        self._take(frame)
                    self._arrived.notify_all()

    def send(self, frame: GuestFrame) -> None:
        self._channel.send(frame)

    def send_soon(self, frame: GuestFrame) -> None:
        self._late.send(frame)

    def read_cancels(self) -> None:
        if self._has_reader or not self._reading.acquire(blocking=False):
            return
        with exits.with_agent():
            for frame in self._channel.receive_nowait():
                self._take(frame)
        self._reading.release()

    def wait_read(self, progress: CallProgress, seq: int) -> bool:
        until = time.monotonic() + WINDOW_WAIT_S
        while seq > progress.read_seq and not progress.cancelled:
            if self._has_reader:  # another thread of the function may have it started at any time
                return progress.wait_read(seq)
            left_s = until - time.monotonic()
            if left_s <= 0:
                return False
            if self._channel.wait_readable(min(left_s, READER_LOOK_S)):
                self.read_cancels()
        return not progress.cancelled

    def _take(self, frame: GuestFrame) -> None:
        if isinstance(frame, GuestWork):
            self._table.take(frame)
            self._queue.append(frame)
        elif isinstance(frame, CancelCall | WindowUpdate):
            unstarted = self._table.apply(frame)
            if unstarted is not None:
                self._channel.send(unstarted)
        elif isinstance(frame, NestedResult):
            self._nested.finish(frame)
        elif isinstance(frame, ParkWork):
            self._queue.append(frame)  # its hooks run where the function does
        elif isinstance(frame, DrainGuest):
            self._draining.start()
        elif isinstance(frame, Leave):
            self._left = True

    def _run(self, work: GuestWork | ParkWork) -> None:
        if isinstance(work, ParkWork):
            self._channel.send(run_park_hooks(self._target, work, self._wait))
            return
        # The next call must not see a call's context variables.
        frame = contextvars.copy_context().run(run_work, self._target, work, self._table, self)
        if frame is not None:
            self._channel.send(frame)
            exits.exit_if_fatal(frame, self._channel.flush)
