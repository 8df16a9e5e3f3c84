"""What else takes the place of a call at a guest: a check of the container."""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import Refusal, Refused
from pilotlight_core.model.spec import Batching
from pilotlight_runtime.guest.frames import Invoke, InvokeBatch, Result
from tests.builders.calls import BODY, run
from tests.runtime.fake_runner_io import FakeRunnerIO, accepted, runner_of


def test_a_call_waits_for_what_has_its_place_and_has_not_started() -> None:
    """It is sent once the place is free."""
    io = FakeRunnerIO()
    runner = runner_of(io)
    assert runner.take_input()
    runner.add(accepted(run("a"), 1.0), 1.0)
    assert not io.of(Invoke)
    assert runner.running == 0
    runner.free_input(1.5)

    assert [frame.call_id for frame in io.of(Invoke)] == ["a"]


def test_there_is_no_place_beside_as_many_calls_as_the_guest_takes() -> None:
    """But as soon as one of them ends."""
    io = FakeRunnerIO()
    runner = runner_of(io, max_inputs=2)
    for call in "ab":
        runner.add(accepted(run(call), 1.0), 1.0)
    assert not runner.take_input()
    runner.on_result(Result(call_id="a"), 1.1)

    assert runner.take_input()
    assert not runner.take_input()
    runner.halt()
    runner.free_input(1.2)
    assert not runner.take_input()


def test_a_batch_waits_too() -> None:
    """However full it is."""
    io = FakeRunnerIO()
    runner = runner_of(io, batching=Batching(max_batch_size=2, wait_ms=0.0))
    assert runner.take_input()
    for call in "ab":
        runner.add(accepted(run(call), 1.0), 1.0)
    assert not io.of(InvokeBatch)
    runner.free_input(1.1)

    assert [[call for call, _ in batch.items] for batch in io.of(InvokeBatch)] == [["a", "b"]]


def test_calls_that_the_guest_does_not_have_are_given_back() -> None:
    """Those whose input is on its way as well; what runs goes on."""
    io = FakeRunnerIO()
    runner = runner_of(io)
    for call in "ab":
        runner.add(accepted(run(call), 1.0), 1.0)
    runner.add(accepted(run("large", body=BODY), 1.0), 1.0)
    runner.refuse_waiting()

    assert [(frame.call_id, frame.reason) for frame in io.of(Refused)] == [
        ("b", Refusal.DRAINING),
        ("large", Refusal.DRAINING),
    ]
    assert runner.held == ("a",)
    assert runner.running == 1
