"""The streams of one container: chunks of the guest on their way to origins, within each stream's window.

And which calls do again what they did in a container that is lost: of streams their chunks tell, of all others the time
(`end_repeats`). That part is not billed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pilotlight_core.model.messages.call_messages import (
    LEAST_AHEAD,
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
MOST_TOGETHER: Final = guest.RUN_CHUNKS
MOST_LEFT: Final = guest.LEFT_BYTES
LARGEST: Final = guest.MAX_CHUNK
"""Asked of each chunk: a constant of a module that is not compiled is looked up there each time."""


class ChunkRelay:
    def __init__(self, spec: FunctionSpec, io: RunnerIO) -> None:
        self._io = io
        self._repeating: dict[str, AcceptedCall] = {}
        """Those that produce again what their callers have."""
        self._methods = frozenset(m.name for m in spec.methods if m.mode is Mode.GENERATOR)

    def begin(self, call: AcceptedCall, at: float) -> None:
        """A call has started: a stream that goes on counts from where it was, and repeats what was sent since."""
        call.is_stream = call.run.method in self._methods
        self._begin(call, at)
        if call.is_stream:
            _move_window(call)

    @property
    def is_repeating(self) -> bool:
        """Whether a call produces again what its caller has."""
        return bool(self._repeating)

    def _begin(self, call: AcceptedCall, at: float) -> None:
        if (resume := call.run.resume) is None:
            if call.run.lost_ms:
                self._repeat(call, at + call.run.lost_ms / 1e3)
            return
        call.heard_seq = call.sent_seq = call.read_seq = resume.after
        call.new_seq = resume.sent
        if resume.sent > resume.after or resume.fell_silent:
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

    def relay_runs(self, running: Mapping[str, AcceptedCall], runs: Sequence[guest.ChunkRun], at: float) -> str:
        """Relay what one frame has of several streams, of the calls that are `running`; as `relay`.

        What they have done is noted once for all of them.
        """
        kept: list[AcceptedCall] = []
        fault = ""
        for run in runs:
            if fault := self._relay(running.get(run.call_id), run.seq, run.data, at, kept):
                break
        if kept:
            self._io.keep_work(kept)
        return fault

    def relay(self, call: AcceptedCall | None, seq: int, data: tuple[bytes, ...], at: float) -> str:
        """Relay chunks that follow each other, `seq` the first, unless their call is decided; its window holds all the
        same.

        Returns which rule the guest has broken, "" for none. `call` is the running one of the frame's id.
        """
        kept: list[AcceptedCall] = []
        fault = self._relay(call, seq, data, at, kept)
        if kept:
            self._io.keep_work(kept)
        return fault

    def _relay(
        self, call: AcceptedCall | None, seq: int, data: tuple[bytes, ...], at: float, kept: list[AcceptedCall]
    ) -> str:
        """As `relay`; a call that has done what need not be done again is added to `kept`."""
        if call is None or not call.is_stream:
            return "the guest streamed for a call that does not stream"
        count = len(data)
        size = len(data[0]) if count == 1 else max(map(len, data), default=0)
        last = seq + count - 1
        if count != 1 and (count == 0 or count > MOST_TOGETHER or size > MOST_LEFT):
            return "the guest sent no chunk, too many or too large ones together"
        if size > call.largest_chunk:
            call.largest_chunk = size
            _move_window(call)
        if seq != call.heard_seq + 1 or last > call.allowed_seq:
            return "the guest streamed out of order or beyond its window"
        if size > LARGEST:
            return f"the guest sent a chunk of {size} bytes, {LARGEST} is the most"
        call.heard_seq = last
        room = call.checkpoint_room + CHECKPOINTS_PER_CHUNK * count
        call.checkpoint_room = room if room < CHECKPOINT_ROOM else CHECKPOINT_ROOM
        if call.outcome is None:
            if call.sent_seq < call.filling_seq <= last:
                call.full_since_at = at
            call.sent_seq = last
            self._io.send_chunks(call, seq, data)
            if call.new_seq >= 0:
                if call.repeats_until is not None:
                    self._note_new(call)
                if last > call.new_seq:
                    kept.append(call)
        return ""

    def _note_new(self, call: AcceptedCall) -> None:
        """What a stream does from now on is new, once its caller has had all that was ever produced."""
        resume = call.run.resume
        if resume is not None and not resume.fell_silent and call.sent_seq >= resume.sent:
            self.end_repeat(call)

    def relay_checkpoint(self, call: AcceptedCall | None, frame: guest.CheckpointOut, at: float) -> str:
        """Relay a checkpoint, unless its call is decided; returns which rule the guest has broken, "" for none."""
        if call is None or call.run.resume is None or not call.is_stream:
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
            _move_window(call)
        if call.outcome is None and (call.is_movable or at - call.saved_at >= UNMOVABLE_EVERY_S):
            call.saved_at = at
            self._io.keep_work((call,))
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
            _move_window(call)
            self._io.send_to_guest(guest.WindowUpdate(call_id=call.call_id, upto=upto))

    def is_stalled(self, call: AcceptedCall, at: float) -> bool:
        """Whether nothing of a call's stream was read for too long."""
        is_full = call.is_stream and call.sent_seq >= call.filling_seq
        return is_full and at - call.full_since_at > STALLED_S


def start_of(run: Run) -> guest.StreamStart | None:
    """Where the guest begins a stream; None: it is not resumable."""
    return None if run.resume is None else guest.StreamStart(after=run.resume.after, state=run.resume.state)


def _move_window(call: AcceptedCall) -> None:
    """Work out how far the guest may go, from what was passed on and the largest chunk."""
    window = call.run.window
    call.allowed_seq = call.read_seq + chunks_ahead(window, call.largest_chunk)
    call.filling_seq = call.read_seq + min(window, LEAST_AHEAD)
