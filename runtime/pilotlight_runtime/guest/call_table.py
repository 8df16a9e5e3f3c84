"""The calls that a guest holds: which have begun or were cancelled, and how far a stream may run ahead."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pilotlight_core.model.messages.agent_messages import Outcome
from pilotlight_runtime.guest.frames import (
    BatchResult,
    CancelCall,
    GuestFrame,
    GuestItemResult,
    Invoke,
    InvokeBatch,
    Result,
    WindowUpdate,
)

WINDOW_WAIT_S = 60.0
"""A stream whose window does not move for this long has no reader."""


class GuestCall:
    __slots__ = ("_moved", "begun", "cancelled", "frame", "upto", "wake")

    def __init__(self, frame: Invoke) -> None:
        self.frame = frame
        self.begun = False
        self.cancelled = False
        self.upto = 0
        """The last chunk that the reader is known to have."""
        self.wake: Callable[[], object] | None = None
        """Called for a call in an event loop that was cancelled or may go on."""
        self._moved: threading.Condition | None = None

    def may_send(self, seq: int) -> bool:
        return seq <= self.upto + self.frame.window

    def wait_window(self, seq: int) -> bool:
        """Wait until chunk `seq` may be sent; False if it never may."""
        if not self.may_send(seq):
            moved = self._moved = self._moved or threading.Condition()
            with moved:
                moved.wait_for(lambda: self.cancelled or self.may_send(seq), WINDOW_WAIT_S)
        return not self.cancelled and self.may_send(seq)

    def notify(self) -> None:
        if self._moved is not None:
            with self._moved:
                self._moved.notify_all()
        if self.wake is not None:
            self.wake()


class GuestBatch:
    __slots__ = ("begun", "dropped", "frame")

    def __init__(self, frame: InvokeBatch) -> None:
        self.frame = frame
        self.begun = False
        self.dropped: set[str] = set()
        """Its cancelled calls."""

    def wanted(self) -> list[tuple[str, bytes]]:
        return [item for item in self.frame.items if item[0] not in self.dropped]

    def unstarted(self) -> BatchResult:
        """The answer when all its items were cancelled before it began."""
        results = tuple(GuestItemResult(call_id=call, outcome=Outcome.CANCELLED) for call, _ in self.frame.items)
        return BatchResult(batch=self.frame.batch, results=results, started=False)


GuestWork = GuestCall | GuestBatch


class CallTable:
    """Takes frames about calls, and gives work to workers. Any thread may call any method.

    One lock serves a cancel and the worker that begins a call, so a call either never began or ran.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[str, GuestWork] = {}

    def take(self, frame: Invoke | InvokeBatch) -> GuestWork:
        if isinstance(frame, Invoke):
            call = self._calls[frame.call_id] = GuestCall(frame)
            return call
        batch = GuestBatch(frame)
        self._calls.update(dict.fromkeys((name for name, _ in frame.items), batch))
        return batch

    def begin(self, work: GuestWork) -> bool:
        """Claim work for a worker; False if all of it was cancelled before."""
        with self._lock:
            if isinstance(work, GuestCall):
                work.begun = not work.cancelled
            else:
                work.begun = bool(work.wanted())
            return work.begun

    def end(self, work: GuestWork) -> None:
        if isinstance(work, GuestCall):
            self._calls.pop(work.frame.call_id, None)
            return
        for name, _ in work.frame.items:
            self._calls.pop(name, None)

    def apply(self, frame: CancelCall | WindowUpdate) -> GuestFrame | None:
        """Change a known call; returns the Result to send if that cancels a call that never began."""
        work = self._calls.get(frame.call_id)
        if work is None:
            return None
        if isinstance(frame, WindowUpdate):
            if isinstance(work, GuestCall):
                work.upto = max(work.upto, frame.upto)
                work.notify()
            return None
        return self._cancel(work, frame.call_id)

    def _cancel(self, work: GuestWork, call_id: str) -> GuestFrame | None:
        with self._lock:
            if isinstance(work, GuestBatch):
                work.dropped.add(call_id)
                return None
            if work.cancelled:
                return None
            work.cancelled = True
        if work.begun:
            work.notify()
            return None
        self.end(work)
        return Result(call_id=call_id, outcome=Outcome.CANCELLED, started=False)

    @property
    def held(self) -> int:
        return len(self._calls)
