"""The chunks and checkpoints that a stream sends."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from contextvars import copy_context
from typing import Any

import pytest

from pilotlight import checkpoint, resume
from pilotlight_core.model import values
from pilotlight_core.model.messages.call_messages import LEAST_AHEAD, WINDOW, Outcome
from pilotlight_core.model.spec import Mode
from pilotlight_runtime.guest import stream_out
from pilotlight_runtime.guest.async_work_runner import run_async_call
from pilotlight_runtime.guest.call_table import CallProgress
from pilotlight_runtime.guest.frames import CheckpointOut, ChunkOut, GuestFrame, Invoke, Result, StreamStart
from pilotlight_runtime.guest.guest_target import GuestTarget, target_of
from pilotlight_runtime.guest.stream_out import StreamOut
from pilotlight_runtime.guest.work_runner import run_call
from tests.builders.specs import function_spec, method


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


def test_chunks_that_follow_at_once_may_wait_for_others() -> None:
    """Not the first, nor one that took its time: nobody knows when the next one comes."""
    now, soon = list[GuestFrame](), list[GuestFrame]()
    out = StreamOut(Invoke(call_id="a"), now.append, soon.append, quick_s=math.inf)
    out.send_chunk(b"1")
    out.send_chunk(b"2")
    slow = StreamOut(Invoke(call_id="b"), now.append, soon.append, quick_s=0.0)
    slow.send_chunk(b"1")
    slow.send_chunk(b"2")

    assert [(frame.call_id, frame.seq) for frame in now if isinstance(frame, ChunkOut)] == [
        ("a", 1),
        ("b", 1),
        ("b", 2),
    ]
    assert [(frame.call_id, frame.seq) for frame in soon if isinstance(frame, ChunkOut)] == [("a", 2)]


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


def count(upto: int) -> Iterator[int]:
    """Count on from what was saved, saving each."""
    number = resume(0)
    while number < upto:
        number += 1
        yield number
        checkpoint(number)


async def count_async(upto: int) -> AsyncIterator[int]:
    """The same, in an event loop."""
    for number in count(upto):
        yield number


def blind(upto: int) -> Iterator[int]:
    """Count from the beginning, whatever was saved."""
    yield from range(1, upto + 1)


class Sent:
    """A connection whose reader keeps up."""

    def __init__(self) -> None:
        self.frames: list[GuestFrame] = []
        self.send = self.send_soon = self.frames.append

    def read_cancels(self) -> None:
        """There are none."""

    def wait_read(self, progress: CallProgress, seq: int) -> bool:
        return True


def invoke(**start: Any) -> Invoke:
    return Invoke(call_id="a", input=values.encode({"upto": 3}), window=8, resume=StreamStart(**start))


def target(function: Any, *, is_async: bool = False) -> GuestTarget:
    spec = function_spec("f", method(attribute="f", mode=Mode.GENERATOR, is_async=is_async))
    return target_of(spec, function)


GOES_ON = [("ChunkOut", 2), ("CheckpointOut", 2), ("ChunkOut", 3), ("CheckpointOut", 3)]


def run_here(function: Any, call: Invoke, sent: Sent) -> Result:
    """Run a call as a guest does, in a context of its own."""
    return copy_context().run(run_call, target(function), call, CallProgress(), sent)


def told(sent: Sent) -> list[tuple[str, int]]:
    return [(type(frame).__name__, frame.seq) for frame in sent.frames if isinstance(frame, ChunkOut | CheckpointOut)]


def test_a_generator_goes_on_from_its_state() -> None:
    """Its chunks and checkpoints have the numbers that follow."""
    sent = Sent()
    result = run_here(count, invoke(after=1, state=values.encode(1)), sent)

    assert (result.outcome, result.last_seq) == (Outcome.OK, 3)
    assert told(sent) == GOES_ON


async def test_an_asynchronous_generator_does_too() -> None:
    """In the context of its task."""
    sent, task = Sent(), asyncio.current_task()
    assert task is not None
    start = invoke(after=1, state=values.encode(1))
    result = await run_async_call(target(count_async, is_async=True), start, CallProgress(), sent, task)

    assert (result.outcome, result.last_seq) == (Outcome.OK, 3)
    assert told(sent) == GOES_ON


def test_a_generator_that_forgets_its_state_fails_before_its_first_chunk() -> None:
    """With the words that help."""
    sent = Sent()
    result = run_here(blind, invoke(after=1, state=values.encode(1)), sent)

    assert result.outcome is Outcome.RAISED
    assert result.error is not None
    assert "call pilotlight.resume(state) before the first yield" in result.error.message
    assert not sent.frames
    assert run_here(blind, invoke(), sent).outcome is Outcome.OK
