"""The progress of the calls that a guest holds: begun, cancelled, and how far a stream's reader has come."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_runtime.guest.frames import CancelCall, GuestWork, Invoke, InvokeBatch, Result, WindowUpdate

WINDOW_WAIT_S = 60.0
"""A stream whose window does not move for this long has no reader."""


class CallProgress:
    """What changes of a call while its guest holds it; the call itself is its Invoke."""

    __slots__ = ("_moved", "begun", "cancelled", "counted", "read_seq", "wake")

    items = 0

    def __init__(self) -> None:
        self.begun = False
        self.cancelled = False
        self.read_seq = 0
        """The last chunk that the reader is known to have."""
        self.wake: Callable[[], object] | None = None
        """Called for a call in an event loop that was cancelled or may go on."""
        self.counted: list[dict[str, int]] | None = None
        """The units that it counted, in one row; see `running_code`."""
        self._moved: threading.Condition | None = None

    def wait_read(self, seq: int) -> bool:
        """Wait until the reader has chunk `seq`; False if it never does."""
        if seq > self.read_seq:
            moved = self._moved = self._moved or threading.Condition()
            with moved:
                moved.wait_for(lambda: self.cancelled or seq <= self.read_seq, WINDOW_WAIT_S)
        return not self.cancelled and seq <= self.read_seq

    def notify(self) -> None:
        if self._moved is not None:
            with self._moved:
                self._moved.notify_all()
        if self.wake is not None:
            self.wake()


class CallTable:
    """The calls and batches of a guest by call id. Any thread may call any method.

    One lock serves a cancel and the worker that begins a call, so a call either never began or ran.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[str, CallProgress] = {}
        self._batched: dict[str, set[str]] = {}
        """An item's call id -> the cancelled items of its batch."""

    def take(self, work: GuestWork) -> None:
        if isinstance(work, Invoke):
            self._calls[work.call_id] = CallProgress()
        else:
            dropped: set[str] = set()
            self._batched.update((call_id, dropped) for call_id, _ in work.items)

    def begin(self, call: Invoke) -> CallProgress | None:
        """Claim a call for a worker; None if it was cancelled before, and has been answered."""
        with self._lock:
            progress = self._calls.get(call.call_id)
            # Begun: of a call granted again after its cancel, the first Invoke may still have been in the queue.
            if progress is None or progress.begun:
                return None
            progress.begun = True
            return progress

    def dropped(self, batch: InvokeBatch) -> set[str]:
        """The cancelled items of a batch; more may be added while it runs."""
        return self._batched[batch.items[0][0]]

    def end(self, work: GuestWork) -> None:
        if isinstance(work, Invoke):
            self._calls.pop(work.call_id, None)
            return
        for call_id, _ in work.items:
            self._batched.pop(call_id, None)

    def apply(self, frame: CancelCall | WindowUpdate) -> Result | None:
        """Change a known call; returns the Result to send if that cancels a call that never began."""
        if isinstance(frame, CancelCall):
            return self._cancel(frame.call_id)
        progress = self._calls.get(frame.call_id)
        if progress is not None:
            progress.read_seq = max(progress.read_seq, frame.upto)
            progress.notify()
        return None

    def _cancel(self, call_id: str) -> Result | None:
        dropped = self._batched.get(call_id)
        if dropped is not None:
            dropped.add(call_id)
            return None
        with self._lock:
            progress = self._calls.get(call_id)
            if progress is None or progress.cancelled:
                return None
            if not progress.begun:
                del self._calls[call_id]
                return Result(call_id=call_id, outcome=Outcome.CANCELLED, started=False)
            progress.cancelled = True
        progress.notify()
        return None

    def only_begun(self) -> str:
        """The id of the only call that runs; "": several do, or none, or a batch."""
        begun = [call_id for call_id, progress in list(self._calls.items()) if progress.begun]
        return begun[0] if len(begun) == 1 and not self._batched else ""

    @property
    def held(self) -> int:
        return len(self._calls) + len(self._batched)
