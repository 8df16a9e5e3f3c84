"""The chunks and checkpoints that a stream sends."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.call_messages import LEAST_AHEAD, WINDOW
from pilotlight_runtime.guest import stream_out
from pilotlight_runtime.guest.frames import CheckpointOut, GuestFrame, Invoke, StreamStart
from pilotlight_runtime.guest.stream_out import StreamOut


def stream(sent: list[GuestFrame], **how: object) -> StreamOut:
    return StreamOut(Invoke(call_id="a", window=WINDOW, resume=StreamStart(**how)), sent.append)  # type: ignore[arg-type]


def saved(sent: list[GuestFrame]) -> list[tuple[int, bytes]]:
    return [(frame.seq, frame.state) for frame in sent if isinstance(frame, CheckpointOut)]


def test_it_counts_from_where_it_was() -> None:
    """The next chunk is behind those that an earlier container sent, and so is the window."""
    sent: list[GuestFrame] = []
    out = stream(sent, after=7, state=b"seven")

    assert out.read_state() == b"seven"
    out.check_resumed()
    out.send_chunk(b"8")
    assert [getattr(frame, "seq", 0) for frame in sent] == [8]
    assert out.needs_read == 9 - WINDOW


def test_one_that_does_not_look_where_it_goes_on_is_stopped() -> None:
    """It would say all from the beginning, under numbers that follow."""
    out = stream([], after=7, state=b"seven")

    with pytest.raises(RuntimeError, match="was to go on behind chunk 7"):
        out.check_resumed()
    stream([]).check_resumed()


def test_a_state_is_saved_behind_its_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once if it is the first there; of those that follow too soon the last goes before the next chunk."""
    monkeypatch.setattr(stream_out, "CHECKPOINT_EVERY_S", 3_600.0)
    sent: list[GuestFrame] = []
    out = stream(sent)

    assert "call pilotlight.resume(state) first" in out.save_state(b"unread")
    out.read_state()
    assert [out.save_state(state) for state in (b"0", b"0+", b"0++")] == [""] * 3
    assert saved(sent) == [(0, b"0")]
    out.send_chunk(b"1")
    out.save_state(b"1")
    assert saved(sent) == [(0, b"0"), (0, b"0++"), (1, b"1")]


def test_large_states_make_the_window_small() -> None:
    """As large chunks do: so many bytes may be under way."""
    out = stream([])
    out.read_state()
    out.save_state(b"x" * 64 * 1024)

    assert out.needs_read == 1 - LEAST_AHEAD
