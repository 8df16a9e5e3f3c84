"""Functions that call others, in a real guest: frames out, and each answer to who waits for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotlight_core.model import values
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_runtime.guest.frames import (
    CancelCall,
    ChunkOut,
    DrainGuest,
    DrainHooksEnded,
    HooksRan,
    InvokeBatch,
    NestedCall,
    NestedLeave,
    NestedResult,
    ParkGuest,
    Result,
    UnparkGuest,
    WindowUpdate,
)
from tests.runtime.guest.apps import nesting
from tests.runtime.guest.harness import Guest, spec_of

MOST = 4


def loaded(function: Any) -> Guest:
    """A guest of an agent that knows nested calls."""
    guest = Guest()
    guest.load(spec_of(function), nested=MOST)
    return guest


def asked(guest: Guest) -> tuple[NestedCall, dict[str, Any]]:
    """The next frame, which is a nested call, and its request."""
    frame = guest.receive()
    assert isinstance(frame, NestedCall), frame
    return frame, values.decode(frame.request)


def answer(frame: NestedCall, output: Any) -> NestedResult:
    """What the agent answers."""
    return NestedResult(number=frame.number, body=values.encode({"output": output}))


def test_a_call_waits_for_the_answer_of_another() -> None:
    """The frame says which call asks, and that the function is of its own app; later calls are served as before."""
    with loaded(nesting.plain) as guest:
        for turn in range(3):
            guest.invoke(f"c{turn}", number=turn)
            frame, request = asked(guest)
            assert (frame.call_id, frame.function, frame.of_app) == (f"c{turn}", "nesting.other", True)
            assert request == {"input": {"number": turn}}
            guest.send(answer(frame, turn * 10))
            assert values.decode(guest.result().output) == turn * 10


def test_by_name_arguments_may_have_places() -> None:
    """Which the platform names; the function is of another app."""
    with loaded(nesting.named) as guest:
        guest.invoke("a", text="x")
        frame, request = asked(guest)
        assert (frame.function, frame.of_app) == ("shop.hello", False)
        assert request == {"input": {"times": 2}, "args": ["x"]}
        guest.send(answer(frame, None))
        assert values.decode(guest.result().output) is None


def test_an_error_is_raised_where_the_answer_was_awaited() -> None:
    """As it would be outside: of the type that it has, with its text."""
    with loaded(nesting.plain) as guest:
        guest.invoke("a", number=1)
        frame, _ = asked(guest)
        problem = {"code": "function_raised", "detail": "ValueError: too small", "traceback": "ValueError: too small"}
        guest.send(NestedResult(number=frame.number, problem=msgspec.json.encode(problem)))
        result = guest.result()

    assert result.error is not None
    assert result.error.message == "ValueError: too small" or result.error.message == "too small"


def test_a_cancel_comes_through_while_the_function_waits() -> None:
    """Its nested call fails, and the call ends as cancelled."""
    with loaded(nesting.plain) as guest:
        guest.invoke("a", number=1)
        frame, _ = asked(guest)
        guest.send(CancelCall(call_id="a"))
        guest.send(NestedResult(number=frame.number, problem=b'{"code": "cancelled", "detail": "left"}'))
        assert guest.result().outcome == "cancelled"


def test_a_thread_calls_for_the_only_call() -> None:
    """It has no context, and needs none."""
    with loaded(nesting.in_thread) as guest:
        guest.invoke("a", number=3)
        frame, _ = asked(guest)
        assert frame.call_id == "a"
        guest.send(answer(frame, 6))
        assert values.decode(guest.result().output) == [6]


def test_a_stream_calls_between_its_chunks() -> None:
    """And waits for its reader as before, though another thread reads the socket now."""
    with loaded(nesting.stream) as guest:
        guest.invoke("a", upto=3, window=1)
        for number in range(3):
            frame, _ = asked(guest)
            guest.send(answer(frame, number * 10))
            if number:
                guest.send(WindowUpdate(call_id="a", upto=number))
            chunk = guest.receive()
            assert isinstance(chunk, ChunkOut)
            assert values.decode(chunk.data) == number * 10
        assert guest.result().last_seq == 3


def test_calls_of_a_shared_container_ask_for_themselves() -> None:
    """Each its own; a thread that could be of either is refused."""
    with loaded(nesting.shared) as guest:
        guest.invoke("a", number=1)
        first, _ = asked(guest)
        guest.invoke("b", number=2)
        second, _ = asked(guest)
        assert (first.call_id, second.call_id) == ("a", "b")
        guest.invoke("c", number=3, apart=True)
        assert values.decode(guest.result().output) == "running call"
        guest.send(answer(second, 20), answer(first, 10))
        assert {guest.result().call_id: None, guest.result().call_id: None}.keys() == {"a", "b"}


def test_an_event_loop_awaits_and_never_blocks() -> None:
    """A blocking call there is refused; a task that is cancelled leaves what it waited for."""
    with loaded(nesting.loop) as guest:
        guest.invoke("a", number=1)
        frame, _ = asked(guest)
        guest.send(answer(frame, 10))
        assert values.decode(guest.result().output) == 10
        guest.invoke("b", number=1, how="blocking")
        assert values.decode(guest.result().output) == "event loop"
        guest.invoke("c", number=1, how="left")
        frame, _ = asked(guest)
        seen = [guest.receive(), guest.receive()]
        assert NestedLeave(number=frame.number) in seen
        guest.send(NestedResult(number=frame.number, problem=b'{"code": "cancelled"}'))
        assert guest.call(number=1, how="blocking") == "event loop"


def test_a_batch_and_a_hook_have_no_call() -> None:
    """Which is said."""
    with loaded(nesting.batch) as guest:
        items = (("a", values.encode({"number": 1})), ("b", values.encode({"number": 2})))
        guest.send(InvokeBatch(batch=1, method=nesting.batch.spec.methods[0].name, items=items))
        result = guest.receive()
        assert [values.decode(each.output) for each in result.results] == ["batch", "batch"]
    with loaded(nesting.Hooked) as guest:
        assert guest.call("tell") == "running call"


def test_a_hook_calls_for_none_of_the_calls_beside_it(tmp_path: Path) -> None:
    """Also at the end, when nobody would read an answer any more."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with loaded(nesting.Leaving) as guest:
        for asked_for in (ParkGuest(), UnparkGuest()):
            guest.send(asked_for)
            assert guest.receive() == HooksRan()
        guest.invoke("a", "wait", path=str(gate))
        guest.send(DrainGuest())
        assert guest.receive() == DrainHooksEnded()
        gate.write_text("x")
        assert guest.receive().outcome is Outcome.OK
        _, out, _ = guest.leave()

    assert out.split("\n")[:3] == ["park running call", "unpark running call", "drain running call"]


def test_a_call_waits_for_no_more_than_it_may() -> None:
    """The guest refuses before the agent would kill it; what has ended counts no more."""
    with loaded(nesting.many) as guest:
        guest.invoke("a", count=MOST + 1)
        frames = [asked(guest)[0] for _ in range(MOST)]
        assert values.decode(guest.result().output) == "fan-out"
        guest.send(*(answer(frame, None) for frame in frames))
        guest.invoke("a", count=MOST)
        assert [asked(guest)[0].call_id for _ in range(MOST)] == ["a"] * MOST


@pytest.mark.parametrize("function", [nesting.plain, nesting.loop])
def test_an_older_agent_is_asked_nothing(function: Any) -> None:
    """It would not know the frame."""
    with Guest() as guest:
        guest.load(spec_of(function))
        guest.invoke("a", number=1)
        result = guest.result()

    assert isinstance(result, Result)
    assert result.error is not None
    assert result.error.message.startswith("agent: this node's agent is older")
