"""Serving synchronous functions: one thread reads, and as many as there are inputs at a time work.

With one input at a time the main thread works, so that signals, thread-local state and the device's context are as in
a script; with more, the main thread reads.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue

from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.answers import run_batch, run_call
from pilotlight_runtime.guest.calls import Batch, Call, Desk, Work
from pilotlight_runtime.guest.channel import Channel
from pilotlight_runtime.guest.frames import BatchResult, CancelCall, Invoke, InvokeBatch, Leave, Result, WindowUpdate
from pilotlight_runtime.guest.target import Target

MAX_THREADS = 128
"""A sandbox's limit of processes and threads leaves the tenant's own libraries the other half."""


class ThreadServer:
    """Serves a target until the agent says Leave."""

    def __init__(self, channel: Channel, target: Target, max_inputs: int) -> None:
        self._channel = channel
        self._target = target
        self._desk = Desk()
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._most = min(max_inputs, MAX_THREADS)
        self._threads = 0

    def serve(self) -> None:
        """Returns after Leave."""
        if self._most == 1:
            _start(self._read)
            self._work()
        else:
            self._read()

    def _read(self) -> None:
        """Take frames in, never running the tenant's code."""
        with exits.with_agent():
            while True:
                frame = self._channel.receive()
                if isinstance(frame, Invoke | InvokeBatch):
                    self._queue.put(self._desk.take(frame))
                    self._hire()
                elif isinstance(frame, CancelCall | WindowUpdate):
                    unstarted = self._desk.apply(frame)
                    if unstarted is not None:
                        self._channel.send(unstarted)
                elif isinstance(frame, Leave):
                    self._queue.put(None)
                    return

    def _hire(self) -> None:
        """A thread more while there is work beyond those that there are."""
        if self._most == 1 or self._threads >= min(self._most, self._desk.held):
            return
        try:
            _start(self._work)
            self._threads += 1
        except RuntimeError:  # the sandbox allows no more threads: those that there are do the work
            if not self._threads:
                raise

    def _work(self) -> None:
        with exits.with_agent():
            while (work := self._queue.get()) is not None:
                if self._desk.begin(work):
                    self._run(work)
                elif isinstance(work, Batch):
                    self._desk.end(work)
                    self._channel.send(work.unstarted())

    def _run(self, work: Work) -> None:
        # What a call leaves in context variables is not for the next one.
        frame = contextvars.copy_context().run(self._answer, work)
        self._desk.end(work)
        self._channel.send(frame)
        exits.unless_alive(frame)

    def _answer(self, work: Work) -> Result | BatchResult:
        if isinstance(work, Call):
            return run_call(self._target, work, self._channel.send)
        return run_batch(self._target, work)


def _start(run: Callable[[], None]) -> None:
    threading.Thread(target=run, name=f"pilotlight{run.__name__}", daemon=True).start()
