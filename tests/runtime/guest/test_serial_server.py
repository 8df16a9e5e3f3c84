"""Synchronous functions, one call at a time."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from pilotlight_core.model import values
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.drain_hooks import DrainHooks
from pilotlight_runtime.guest.frames import (
    CancelCall,
    ChunkOut,
    Leave,
    Load,
    NestedResult,
    Result,
    WindowUpdate,
    encode,
)
from pilotlight_runtime.guest.guest_nested import GuestNested
from pilotlight_runtime.guest.guest_target import GuestTarget
from pilotlight_runtime.guest.loading import HookRunner
from pilotlight_runtime.guest.serial_server import SerialServer
from tests.runtime.guest.apps import nesting, plain
from tests.runtime.guest.harness import Guest, spec_of


@pytest.fixture(scope="module")
def actor() -> Iterator[Guest]:
    """A guest that does what it is told, for all tests that leave it alive."""
    with Guest() as guest:
        guest.load(spec_of(plain.act))
        yield guest


@pytest.fixture(scope="module")
def counter() -> Iterator[Guest]:
    """A guest that streams numbers."""
    with Guest() as guest:
        guest.load(spec_of(plain.count))
        yield guest


def test_values_travel_both_ways() -> None:
    """JSON types, bytes and arrays, small and 10 MB large."""
    with Guest() as guest:
        guest.load(spec_of(plain.echo))
        value = {"text": "ä", "bytes": b"\x00", "list": [1, 2.5, None, True]}
        assert guest.call(value=value) == value
        array = numpy.arange(1_250_000, dtype="float64")
        assert numpy.array_equal(guest.call(value=array), array)


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("raise", "ValueError", "the reason"),
        ("raise_unprintable", "plain.Unprintable", "<plain.Unprintable.__str__ raised RuntimeError>"),
        ("quit", "SystemExit", "3"),
        ("interrupt", "KeyboardInterrupt", ""),
        ("recurse", "RecursionError", "maximum recursion depth exceeded"),
        ("no_such_kind", "KeyError", "'_no_such_kind'"),
    ],
)
def test_what_the_code_raises_is_its_answer(actor: Guest, kind: str, error: str, message: str) -> None:
    """Whatever it is, the guest goes on, and the traceback shows the tenant's frames alone."""
    actor.invoke("a", kind=kind)
    result = actor.result()

    assert (result.outcome, result.started) == (Outcome.RAISED, True)
    assert result.error is not None
    assert (result.error.type, result.error.message) == (error, message)
    assert "plain.py" in result.error.traceback
    assert "pilotlight_runtime" not in result.error.traceback
    assert len(result.error.traceback) < 40_000
    assert actor.call(kind="main_thread") is True


@pytest.mark.parametrize(
    ("kind", "says"), [("thing", "a object cannot travel"), ("generator", "a generator"), ("huge", "34603013 bytes")]
)
def test_what_cannot_travel_is_bad_output(actor: Guest, kind: str, says: str) -> None:
    """The message names the type, or the size."""
    actor.invoke("a", kind=kind)
    result = actor.result()

    assert result.outcome is Outcome.BAD_OUTPUT
    assert result.error is not None
    assert result.error.type == "BadOutput"
    assert says in result.error.message


def test_arguments_that_do_not_fit_are_named(actor: Guest) -> None:
    """The function's code never sees them."""
    actor.invoke("a", kind=7)
    result = actor.result()

    assert result.error is not None
    assert (result.error.type, result.error.message) == ("BadInput", "kind: Expected `str`, got `int`")
    assert result.error.traceback == ""


def test_context_variables_are_a_calls_own(actor: Guest) -> None:
    """What one call leaves in them, the next does not see."""
    assert [actor.call(kind="context") for _ in range(2)] == ["nothing", "nothing"]


def test_a_fork_answers_once(actor: Guest) -> None:
    """The child of a tenant's fork that runs into the platform's code is silent."""
    assert actor.call(kind="fork") == 2
    assert actor.call(kind="main_thread") is True


def test_a_death_is_a_death() -> None:
    """os._exit ends the guest, with what it had printed."""
    with Guest() as guest:
        guest.load(spec_of(plain.act))
        guest.invoke("a", kind="die")
        with pytest.raises(EOFError):
            guest.receive()
        assert guest.end()[:2] == (7, "last words")


def test_calls_wait_their_turn_and_may_be_taken_back(tmp_path: Path) -> None:
    """A call that waits can be cancelled before it starts; one that runs answers when it returns, and is dropped."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with Guest() as guest:
        guest.load(spec_of(plain.hold))
        guest.invoke("running", path=str(fifo))
        assert guest.line() == "holding"
        guest.invoke("waiting", path="/")
        guest.send(CancelCall(call_id="waiting"), CancelCall(call_id="running"))
        with fifo.open("w") as writer:
            writer.write("go")
        answers = {result.call_id: result for result in (guest.result(), guest.result())}

    assert answers["waiting"] == Result(call_id="waiting", outcome=Outcome.CANCELLED, started=False)
    assert (answers["running"].outcome, answers["running"].started) == (Outcome.CANCELLED, True)
    assert answers["running"].execute_ns > 0


def test_a_stream_is_numbered_from_one(counter: Guest) -> None:
    """Its Result says how many chunks there were."""
    counter.invoke("a", upto=5)
    chunks, result = counter.chunks()

    assert chunks == [1, 2, 3, 4, 5]
    assert (result.outcome, result.last_seq, values.decode(result.output)) == (Outcome.OK, 5, None)
    assert counter.line() == "closed"


def test_a_stream_that_raises_keeps_its_chunks(counter: Guest) -> None:
    """What was yielded before has been sent."""
    counter.invoke("a", upto=5, stop_at=3)
    chunks, result = counter.chunks()

    assert (chunks, result.outcome, result.last_seq) == ([1, 2], Outcome.RAISED, 2)
    assert result.error is not None
    assert result.error.message == "no 3"
    assert counter.line() == "closed"


def test_a_stream_stays_within_its_window(counter: Guest) -> None:
    """It sends `window` chunks ahead and not one more, until the reader has caught up."""
    counter.invoke("a", window=2, upto=4)
    first = [counter.receive() for _ in range(2)]
    counter.send(WindowUpdate(call_id="a", upto=1))
    third = counter.receive()
    counter.send(WindowUpdate(call_id="a", upto=9))
    fourth, result = counter.receive(), counter.receive()

    assert [frame.seq for frame in (*first, third, fourth)] == [1, 2, 3, 4]
    assert result.outcome is Outcome.OK
    assert counter.line() == "closed"


@pytest.mark.parametrize("window", [3, 10**6])
def test_a_cancelled_stream_is_closed(counter: Guest, window: int) -> None:
    """Whether it waits for its reader or runs, it ends at its next yield, and its `finally` has run."""
    counter.invoke("a", window=window, upto=10**9)
    seen = [counter.receive() for _ in range(3)]
    counter.send(CancelCall(call_id="a"))
    while isinstance(frame := counter.receive(), ChunkOut):
        seen.append(frame)

    assert (frame.outcome, frame.started, frame.last_seq) == (Outcome.CANCELLED, True, len(seen))
    assert counter.line() == "closed"


def test_a_clean_up_that_raises_is_logged() -> None:
    """The call has its answer already; the tenant finds the traceback in the log."""
    with Guest() as guest:
        guest.load(spec_of(plain.stubborn))
        guest.invoke("a", window=1)
        guest.receive()
        guest.send(CancelCall(call_id="a"))
        assert guest.result().outcome is Outcome.CANCELLED
        assert "RuntimeError: clean-up failed" in guest.leave()[2]


def test_tensors_travel_and_use_the_cores_they_have() -> None:
    """With torch imported ahead, threads are set when the function is known."""
    torch = pytest.importorskip("torch")
    with Guest(preimport="torch") as guest:
        assert guest.hello.modules == ("torch",)
        guest.load(spec_of(plain.add_one, cpu=3))
        answer, threads = guest.call(tensor=torch.ones(2, 2))

    assert torch.equal(answer, torch.full((2, 2), 2.0))
    assert threads == 3


def test_a_stream_that_waits_notes_that_another_thread_reads_now(tmp_path: Path) -> None:
    """One that makes the function's first call of another: what the stream waits for goes there."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with Guest() as guest:
        guest.load(spec_of(nesting.beside), nested=1)
        guest.invoke("a", window=1, path=str(fifo))
        assert guest.receive().seq == 1
        time.sleep(0.1)  # it waits for the socket
        fifo.write_text("go")
        frame = guest.receive()
        guest.send(WindowUpdate(call_id="a", upto=1))
        assert guest.receive().seq == 2  # before a reader counts as gone
        guest.send(NestedResult(number=frame.number, problem=b'{"code": "cancelled"}'))
        assert guest.result().last_seq == 2


def test_without_room_for_a_thread_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call fails with that, each time, and the server reads on as before."""
    agent, guest = socket.socketpair()
    with agent, guest:
        channel, no_target = Channel(guest), GuestTarget(methods={})
        nested = GuestNested(channel, Load(spec=spec_of(plain.act), root="/", nested=1))
        server = SerialServer(channel, no_target, nested, HookRunner(), DrainHooks(channel, ()))
        nested.only_call = lambda: "a"

        def fail(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", fail)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="thread"):
                nested.begin("shop.hello", b"", of_app=False, blocking=True)
        agent.sendall(encode(Leave()))
        server.serve()
