"""Work that nobody wants any more: when it is overdue, whether anything else is wanted, and what the runner does."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.call_messages import Ended, Outcome
from pilotlight_runtime.calls.abandoned_work import OverdueWork, overdue_work
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.guest.frames import Result
from tests.builders.calls import run
from tests.runtime.fake_runner_io import FakeRunnerIO, accepted, runner_of

GRACE_S = 30.0
LAST = OverdueWork(call_id="a", is_alone=True)
BESIDE = OverdueWork(call_id="a", is_alone=False)


def running(**given_up: float | None) -> list[AcceptedCall]:
    """Calls by id, each with the instant since when nobody wants it."""
    calls = [accepted(run(call_id), 0.0) for call_id in given_up]
    for call, since in zip(calls, given_up.values(), strict=True):
        call.abandoned_at = since
    return calls


@pytest.mark.parametrize(
    ("given_up", "at", "found"),
    [
        ({}, 100.0, None),
        ({"a": None}, 100.0, None),
        ({"a": 0.0}, 30.0, None),
        ({"a": 0.0}, 30.1, LAST),
        ({"a": 0.0, "b": None}, 30.1, BESIDE),
        ({"a": 0.0, "b": 29.0}, 30.1, LAST),
        ({"b": 29.0, "a": 0.0}, 30.1, LAST),
    ],
)
def test_a_call_is_overdue_after_its_grace(
    given_up: dict[str, float | None], at: float, found: OverdueWork | None
) -> None:
    """Others that are given up do not keep the container; one that is wanted does."""
    assert overdue_work(running(**given_up), lambda _: False, GRACE_S, at) == found


@pytest.mark.parametrize(
    ("given_up", "found"),
    [({"a": 0.0, "b": None}, None), ({"a": 0.0, "b": 20.0}, None), ({"a": 0.0, "b": 1.0}, LAST)],
)
def test_a_batch_is_wanted_as_long_as_one_of_its_items_is(
    given_up: dict[str, float | None], found: OverdueWork | None
) -> None:
    """Its grace begins when the last of them was given up."""
    assert overdue_work(running(**given_up), lambda _: True, GRACE_S, 32.0) == found


def test_a_call_that_goes_on_after_it_was_given_up_ends_the_container() -> None:
    """A plain function cannot be interrupted: it has a grace, then the container is killed, and it was cancelled."""
    io = FakeRunnerIO()
    runner = runner_of(io, timeout=86_400.0, stop_grace_s=30.0)
    runner.add(accepted(run("a"), 0.0), 0.0)
    runner.cancel("a", "the caller left", 1.0)

    runner.end_abandoned(31.0)
    assert not io.kills
    runner.end_abandoned(31.1)

    assert io.kills == ["call a had not ended 30 s after it was given up"]
    runner.on_death("killed", 31.2)
    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.started, ended.reason) == (Outcome.CANCELLED, True, "the caller left")
    assert ended.spent is not None


def test_calls_that_are_wanted_end_before_the_container_does() -> None:
    """One caller that leaves does not cut off another's call; the container only takes no new one meanwhile."""
    io = FakeRunnerIO()
    runner = runner_of(io, max_inputs=2, stop_grace_s=30.0)
    for name in "ab":
        runner.add(accepted(run(name), 0.0), 0.0)
    runner.cancel("a", "the caller left", 0.0)

    runner.end_abandoned(30.1)
    assert (len(io.retired), io.kills) == (1, [])
    runner.on_result(Result(call_id="b"), 40.0)
    runner.end_abandoned(41.0)

    assert len(io.kills) == 1


def test_a_container_that_is_being_killed_is_not_killed_again() -> None:
    """The reason that stands is the first one."""
    io = FakeRunnerIO()
    runner = runner_of(io)
    runner.add(accepted(run("a"), 0.0), 0.0)
    runner.cancel("a", "", 0.0)
    runner.halt()

    runner.end_abandoned(100.0)

    assert not io.kills
