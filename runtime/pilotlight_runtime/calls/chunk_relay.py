"""The streams of one container: chunks of the guest on their way to origins, within each stream's window.

And which calls do again what they did in a container that is lost: of streams their chunks tell, of all others the time
(`end_repeats`). That part is not billed here.
"""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import (
    LEAST_AHEAD,
    ResumePoint,
    Run,
    StreamCheckpoint,
    chunks_ahead,
)
from pilotlight_core.model.spec import FunctionSpec, Mode
from pilotlight_core.model.streams.resuming import MAX_STATE
from pilotlight_runtime.calls.runner_io import RunnerIO
from pilotlight_runtime.calls.slot_table import CHECKPOINT_ROOM, AcceptedCall
from pilotlight_runtime.guest import frames as guest

STALLED_S = 60.0
"""A stream whose window has been full for so long, or may be, has no reader."""


CHECKPOINTS_PER_S = 20.0
"""Twice as many as a guest sends between two chunks."""
CHECKPOINTS_PER_CHUNK = 2.0
UNMOVABLE_EVERY_S = 1.0
"""Of a stream that cannot go on elsewhere its origin gets a state so often: one that fits makes it resumable again."""


class ChunkRelay:
    def __init__(self, spec: FunctionSpec, io: RunnerIO) -> None:
        self._io = io
        self._repeating: dict[str, AcceptedCall] = {}
        """Those that produce again what their callers have."""
        self._methods = frozenset(m.name for m in spec.methods if m.mode is Mode.GENERATOR)

    def begin(self, call: AcceptedCall, at: float) -> None:
        """A call has started: a stream that goes on counts from where it was, and repeats what was sent since."""
        if (resume := call.run.resume) is None:
            if call.run.lost_ms:
                self._repeat(call, at + call.run.lost_ms / 1e3)
            return
        call.heard_seq = call.sent_seq = call.read_seq = resume.after
        if resume.sent > resume.after or resume.until_next:
            self._repeat(call, at + resume.repeat_ms / 1e3)

    def _repeat(self, call: AcceptedCall, ends_at: float) -> None:
        call.repeats_until = ends_at
        self._repeating[call.call_id] = call

    def end_repeats(self, at: float) -> None:
        """Calls that take longer to repeat than it took the first time: from now on it is their tenant's time."""
        for call in [call for call in self._repeating.values() if at >= (call.repeats_until or 0.0)]:
            self.end_repeat(call)

    def forget(self, call: AcceptedCall) -> None:
        """The call has ended, or begins anew."""
        if self._repeating.pop(call.call_id, None) is not None:
            call.repeats_until = None

    def end_repeat(self, call: AcceptedCall) -> None:
        """What a call does from now on is new, if it was not before."""
        if self._repeating.pop(call.call_id, None) is not None:
            call.repeats_until = None
            self._io.end_repeat(call)

    def relay(self, call: AcceptedCall | None, seq: int, data: tuple[bytes, ...], at: float) -> str:
        """Relay chunks that follow each other, `seq` the first, unless their call is decided; its window holds all the
        same.

        Returns which rule the guest has broken, "" for none. `call` is the running one of the frame's id.
        """
        if call is None or call.run.method not in self._methods:
            return "the guest streamed for a call that does not stream"
        run, size, last = call.run, max(map(len, data), default=0), seq + len(data) - 1
        if not data or len(data) > guest.CHUNK_GROUP or (size > guest.LEFT_BYTES and len(data) > 1):
            return "the guest sent no chunk, too many or too large ones together"
        if size > call.largest_chunk:
            call.largest_chunk = size
        if seq != call.heard_seq + 1 or last > call.read_seq + chunks_ahead(run.window, call.largest_chunk):
            return "the guest streamed out of order or beyond its window"
        if size > guest.MAX_CHUNK:
            return f"the guest sent a chunk of {size} bytes, {guest.MAX_CHUNK} is the most"
        call.heard_seq = last
        room = call.checkpoint_room + CHECKPOINTS_PER_CHUNK * len(data)
        call.checkpoint_room = room if room < CHECKPOINT_ROOM else CHECKPOINT_ROOM
        if call.outcome is None:
            if call.sent_seq < call.read_seq + _least(run) <= last:
                call.full_since_at = at
            call.sent_seq = last
            self._io.send_chunks(run, seq, data)
            if run.resume is not None:
                self._note_new(call, run.resume)
        return ""

    def _note_new(self, call: AcceptedCall, resume: ResumePoint) -> None:
        """What a stream that may go on elsewhere has sent by now need not be done again, if its caller had it not."""
        if call.sent_seq > resume.sent or (call.sent_seq == resume.sent and not resume.until_next):
            self.end_repeat(call)
        if call.sent_seq > resume.sent:
            self._io.keep_work(call)

    def relay_checkpoint(self, call: AcceptedCall | None, frame: guest.CheckpointOut, at: float) -> str:
        """Relay a checkpoint, unless its call is decided; returns which rule the guest has broken, "" for none."""
        if call is None or call.run.resume is None or call.run.method not in self._methods:
            return "the guest saved a state for a call that is not resumable"
        size = len(frame.state)
        if frame.seq != call.heard_seq or size > MAX_STATE:
            return f"the guest saved a state of {size} bytes behind chunk {frame.seq}, its last is {call.heard_seq}"
        room = call.checkpoint_room + (at - call.checkpoint_at) * CHECKPOINTS_PER_S
        call.checkpoint_room, call.checkpoint_at = min(CHECKPOINT_ROOM, room) - 1.0, at
        if call.checkpoint_room < 0:
            return "the guest saved its state too often"
        if size > call.largest_chunk:
            call.largest_chunk = size
        if call.outcome is None and (call.is_movable or at - call.saved_at >= UNMOVABLE_EVERY_S):
            call.saved_at = at
            self._io.keep_work(call)
            self._io.send(
                call.run.gateway,
                StreamCheckpoint(
                    call_id=frame.call_id, grant_number=call.grant_number, seq=frame.seq, state=frame.state
                ),
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


def start_of(run: Run) -> guest.StreamStart | None:
    """Where the guest begins a stream; None: it is not resumable."""
    return None if run.resume is None else guest.StreamStart(after=run.resume.after, state=run.resume.state)


def _least(run: Run) -> int:
    """So many chunks that were not passed on fill the window, whatever comes next: it may be too large for more."""
    return min(run.window, LEAST_AHEAD)
