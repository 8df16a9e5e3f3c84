"""The streams of one container: chunks of the guest on their way to origins, within each stream's window."""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import LEAST_AHEAD, Chunk, Run, chunks_ahead
from pilotlight_core.model.spec import FunctionSpec, Mode
from pilotlight_runtime.calls.runner_io import RunnerIO
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.guest import frames as guest

STALLED_S = 60.0
"""A stream whose window has been full for so long, or may be, has no reader."""


class ChunkRelay:
    def __init__(self, spec: FunctionSpec, io: RunnerIO) -> None:
        self._io = io
        self._methods = frozenset(m.name for m in spec.methods if m.mode is Mode.GENERATOR)

    def relay(self, call: AcceptedCall | None, frame: guest.ChunkOut, at: float) -> str:
        """Relay one chunk, unless its call is decided; its window holds all the same.

        Returns which rule the guest has broken, "" for none. `call` is the running one of the frame's id.
        """
        if call is None or call.run.method not in self._methods:
            return "the guest streamed for a call that does not stream"
        run, seq, size = call.run, frame.seq, len(frame.data)
        if size > call.largest_chunk:
            call.largest_chunk = size
        if seq != call.heard_seq + 1 or seq > call.read_seq + chunks_ahead(run.window, call.largest_chunk):
            return "the guest streamed out of order or beyond its window"
        if size > guest.MAX_CHUNK:
            return f"the guest sent a chunk of {size} bytes, {guest.MAX_CHUNK} is the most"
        call.heard_seq = seq
        if call.outcome is not None:
            return ""
        call.sent_seq = seq
        if seq == call.read_seq + _least(run):
            call.full_since_at = at
        self._io.send(
            run.gateway, Chunk(call_id=frame.call_id, grant_number=call.grant_number, seq=seq, data=frame.data)
        )
        return ""

    def on_window(self, call: AcceptedCall, upto: int, at: float) -> None:
        """The origin has passed on chunks up to `upto`."""
        if call.read_seq < upto <= call.sent_seq:
            call.read_seq, call.full_since_at = upto, at
            self._io.send_to_guest(guest.WindowUpdate(call_id=call.call_id, upto=upto))

    def is_stalled(self, call: AcceptedCall, at: float) -> bool:
        """Whether nothing of a call's stream was read for too long."""
        is_full = call.run.method in self._methods and call.sent_seq >= call.read_seq + _least(call.run)
        return is_full and at - call.full_since_at > STALLED_S


def _least(run: Run) -> int:
    """So many chunks that were not passed on fill the window, whatever comes next: it may be too large for more."""
    return min(run.window, LEAST_AHEAD)
