"""Asynchronous functions, in one event loop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pilotlight_core.model import values
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_runtime.guest.frames import CancelCall, ChunkOut, Invoke, InvokeBatch, Result, WindowUpdate
from tests.runtime.guest.apps import plain, waves
from tests.runtime.guest.harness import Guest, spec_of


@pytest.fixture(scope="module")
def sea() -> Iterator[Guest]:
    """A guest that runs two inputs at a time in its loop."""
    with Guest() as guest:
        frames = guest.load(spec_of(waves.Waves))
        assert [frame.name for frame in frames[:-1]] == ["import", "enter", "check"]
        yield guest


def test_a_coroutine_answers(sea: Guest) -> None:
    """And each call has a context of its own."""
    assert sea.call("add", left=1, right=2) == 3
    assert [sea.call("context") for _ in range(2)] == ["nothing", "nothing"]


def test_an_async_function_needs_no_class() -> None:
    """A plain async function is served alike, and its hooks' loop is the calls' loop until the end."""
    with Guest() as guest:
        guest.load(spec_of(plain.nothing_async))
        assert guest.call() is None
        assert guest.leave() == (0, "", "")


@pytest.mark.parametrize(
    ("kind", "error"),
    [("value", "ValueError"), ("exit", "SystemExit"), ("cancel", "asyncio.exceptions.CancelledError")],
)
def test_what_a_coroutine_raises_is_its_answer(sea: Guest, kind: str, error: str) -> None:
    """Even what would end a loop, or looks like a cancel and is none."""
    sea.invoke("a", "fail", kind=kind)
    result = sea.result()

    assert result.outcome is Outcome.RAISED
    assert result.error is not None
    assert result.error.type == error
    assert "waves.py" in result.error.traceback
    assert "pilotlight_runtime" not in result.error.traceback


def test_cancels_reach_what_waits_and_what_runs(sea: Guest) -> None:
    """Two run, the third waits: it is removed, and the running ones are interrupted where they wait."""
    for call in "abc":
        sea.invoke(call, "hang")
    assert [sea.line(), sea.line()] == ["hanging", "hanging"]
    sea.send(CancelCall(call_id="c"))
    assert sea.result() == Result(call_id="c", outcome=Outcome.CANCELLED, started=False)
    sea.send(CancelCall(call_id="a"), CancelCall(call_id="b"))

    assert {sea.result().outcome, sea.result().outcome} == {Outcome.CANCELLED}
    assert [sea.line(), sea.line()] == ["let go", "let go"]
    assert sea.call("add", left=1, right=2) == 3


def test_an_async_stream(sea: Guest) -> None:
    """Chunks, the window, and an error in the middle."""
    sea.invoke("a", "count", window=2, upto=3)
    assert [sea.receive().seq for _ in range(2)] == [1, 2]
    sea.send(WindowUpdate(call_id="a", upto=2))
    assert sea.receive().seq == 3
    assert sea.result().last_seq == 3
    sea.invoke("b", "count", upto=5, stop_at=2)
    chunks, result = sea.chunks()

    assert (chunks, result.outcome, result.last_seq) == ([1], Outcome.RAISED, 1)
    assert [sea.line(), sea.line()] == ["closed", "closed"]


@pytest.mark.parametrize("window", [3, 10**6])
def test_a_cancelled_async_stream_is_closed(sea: Guest, window: int) -> None:
    """Whether it waits for its reader or runs, and its clean-up may await."""
    sea.invoke("a", "count", window=window, upto=100_000)
    seen = [sea.receive() for _ in range(3)]
    sea.send(CancelCall(call_id="a"))
    while isinstance(frame := sea.receive(), ChunkOut):
        seen.append(frame)

    assert frame.last_seq == len(seen)
    assert frame.outcome is Outcome.CANCELLED or len(seen) == 100_000
    assert sea.line() == "closed"


def test_an_async_batch(sea: Guest) -> None:
    """Called once with lists, answers each item; what it raises fails them all."""
    items = tuple((f"c{n}", values.encode({"number": n})) for n in (1, 2))
    sea.send(InvokeBatch(batch=1, method="double", items=items))
    good = sea.receive()
    sea.send(InvokeBatch(batch=2, method="double", items=(*items, ("c13", values.encode({"number": 13})))))
    bad = sea.receive()

    assert [values.decode(item.output) for item in good.results] == [2, 4]
    assert [item.outcome for item in bad.results] == [Outcome.RAISED] * 3
    assert (good.whole, bad.whole) == (False, True)


def test_plain_methods_run_in_threads(sea: Guest) -> None:
    """A method that is not asynchronous does not hold up the loop."""
    assert sea.call("thread") is False
    sea.invoke("a", "each", upto=3)
    assert sea.chunks()[0] == [0, 1, 2]


def test_exit_hooks_run_in_the_loop_of_the_calls() -> None:
    """What an enter hook has opened in the loop can be closed in it."""
    with Guest() as guest:
        guest.load(spec_of(waves.Waves))
        assert guest.leave() == (0, "same loop\n", "")


@pytest.mark.parametrize("end", ["exits", "aborts", "exits later"])
@pytest.mark.parametrize("before", [1, 5, 11])
def test_what_had_ended_is_answered_when_a_call_of_the_same_turn_ends_the_process(end: str, before: int) -> None:
    """Its answer may still have waited for the others of the turn."""
    with Guest() as guest:
        guest.load(spec_of(waves.shore))
        calls = [Invoke(call_id=str(n), input=values.encode({})) for n in range(before)]
        guest.send(*calls, Invoke(call_id="last", input=values.encode({"how": end})))
        answers = [guest.result() for _ in range(before)]

        assert [answer.call_id for answer in answers] == [call.call_id for call in calls]
        assert guest.end()[0] != 0


def test_a_call_that_takes_longer_than_sending_waits_for_no_other() -> None:
    """Its answer is gone before the next one begins, which is killed."""
    with Guest() as guest:
        guest.load(spec_of(waves.shore))
        guest.send(*(Invoke(call_id=how, input=values.encode({"how": how})) for how in ("spins", "is killed")))

        assert guest.result().call_id == "spins"
        with pytest.raises(EOFError):
            guest.receive()


def test_the_child_of_a_call_cannot_send_the_answers_that_wait() -> None:
    """A fork inherits them, and its exit."""
    with Guest() as guest:
        guest.load(spec_of(waves.shore))
        hows = ("", "forks", "")
        guest.send(*(Invoke(call_id=str(n), input=values.encode({"how": how})) for n, how in enumerate(hows)))

        assert [guest.result().call_id for _ in hows] == ["0", "1", "2"]
        assert guest.leave()[0] == 0
