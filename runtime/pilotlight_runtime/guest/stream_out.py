"""One stream that runs in a guest: the numbers of its chunks, its window, and the state that it saves."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from pilotlight_core.model.messages.call_messages import chunks_ahead
from pilotlight_runtime.guest.frames import CheckpointOut, ChunkOut, GuestFrame, Invoke, StreamStart

QUICK_S = 1e-4
"""A chunk that comes so soon after the one before may wait for the next ones: for them all a write costs more."""
CHECKPOINT_EVERY_S = 0.1
"""Between two checkpoints without a chunk between; of those that come faster the last one goes before the chunk."""


class StreamOut:
    """Sends the chunks and checkpoints of one Invoke. It is the `StatefulStream` of the code that runs.

    The first chunk goes at once, and so does each that took its time; `send_soon` gets those that follow within
    `quick_s` of the one before.
    """

    def __init__(
        self,
        call: Invoke,
        send: Callable[[GuestFrame], None],
        send_soon: Callable[[GuestFrame], None] | None = None,
        quick_s: float = QUICK_S,
    ) -> None:
        self._call_id = call.call_id
        self._start = call.resume or StreamStart()
        self._send = send
        self._send_soon = send_soon or send
        self._quick_s = quick_s
        self._sent_at = -math.inf
        self.is_resumable = call.resume is not None
        self.seq = self._start.after
        """Of the last chunk that was sent, here or by an earlier container."""
        self._most = self._window = call.window
        self._largest = 0
        self._has_read = False
        self._saved_seq = -1
        """Behind which chunk the last checkpoint was sent."""
        self._next_at = 0.0
        self._kept = b""
        """A checkpoint that has not been sent yet."""

    @property
    def needs_read(self) -> int:
        """The chunk that the reader must have before the next one may be sent."""
        return self.seq + 1 - self._window

    def check_resumed(self) -> None:
        """Raise RuntimeError if the code yields without having looked where it goes on: it began from the start."""
        if self._start.after and not self._has_read:
            raise RuntimeError(
                f"the generator was to go on behind chunk {self._start.after}, and yielded without a look at the state "
                "that it had saved: call pilotlight.resume(state) before the first yield"
            )

    def note_size(self, size: int) -> None:
        """A chunk or a state has so many bytes: large ones make the window small."""
        if size > self._largest:
            self._largest = size
            self._window = chunks_ahead(self._most, size)

    def send_chunk(self, data: bytes) -> None:
        if self._kept:
            self._send_state(self._kept)
        is_quick = time.perf_counter() - self._sent_at < self._quick_s
        chunk = ChunkOut(call_id=self._call_id, seq=self.seq + 1, data=data)
        (self._send_soon if is_quick else self._send)(chunk)
        self.seq += 1
        self._sent_at = time.perf_counter()

    def read_state(self) -> bytes:
        self._has_read = True
        return self._start.state

    def save_state(self, state: bytes) -> str:
        if not self._has_read:
            return "call pilotlight.resume(state) first: a generator that goes on elsewhere finds its state there"
        self.note_size(len(state))
        if self._saved_seq == self.seq and time.monotonic() < self._next_at:
            self._kept = state
        else:
            self._send_state(state)
        return ""

    def _send_state(self, state: bytes) -> None:
        self._kept, self._saved_seq = b"", self.seq
        self._next_at = time.monotonic() + CHECKPOINT_EVERY_S
        self._send(CheckpointOut(call_id=self._call_id, seq=self.seq, state=state))
