"""How long batches took, until it is told."""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import Outcome, RemoteError
from pilotlight_core.model.spec import Batching
from pilotlight_runtime.guest.frames import BatchResult, GuestItemResult, InvokeBatch, Result
from pilotlight_runtime.metering.container_meter import MOST_KINDS, MOST_MS, MOST_OF_ONE, WorkKey, WorkLog
from tests.builders.calls import run
from tests.runtime.fake_runner_io import FakeRunnerIO, accepted, runner_of

ONE = WorkKey(container="c1", version="v", slice="cpu-0")


def test_the_latest_durations_are_kept_and_all_are_counted() -> None:
    """Per container and batch size; taken once."""
    log = WorkLog()
    for number in range(MOST_MS + 3):
        log.add(ONE, 4, float(number))
    log.add(ONE, 1, 0.5)

    four, one = log.take()

    assert (four.batch, four.count, len(four.ms)) == (4, MOST_MS + 3, MOST_MS)
    assert {float(MOST_MS), MOST_MS + 1.0, MOST_MS + 2.0} <= set(four.ms)
    assert (one.container, one.version, one.slice, one.ms) == ("c1", "v", "cpu-0", (0.5,))
    assert log.take() == ()


def test_it_is_bounded() -> None:
    """What is too much of a second is left out."""
    log = WorkLog()
    for number in range(MOST_KINDS + 10):
        log.add(WorkKey(container=f"c{number}", version="v", slice="cpu-0"), 1, 1.0)

    assert len(log.take()) == MOST_KINDS


def test_one_container_leaves_room_for_the_others() -> None:
    """However many batch sizes it has; with the next report it begins anew."""
    log = WorkLog()
    for number in range(MOST_KINDS):
        log.add(ONE, number + 1, 1.0)
    log.add(WorkKey(container="c2", version="w", slice="cpu-1"), 1, 1.0)

    assert [told.container for told in log.take()] == ["c1"] * MOST_OF_ONE + ["c2"]
    log.add(ONE, 999, 1.0)
    assert len(log.take()) == 1


def test_what_went_well_is_told_with_how_many_were_worked_on_at_once() -> None:
    """Concurrent calls with those beside them, batches once; what failed says nothing of speed.

    By the agent's clock: with the way to the guest, which is most of it for a call of microseconds.
    """
    io = FakeRunnerIO()
    runner = runner_of(io, max_inputs=3)
    for call in "abc":
        runner.add(accepted(run(call), 1.0), 1.0)
    runner.on_result(Result(call_id="a", execute_ns=30_000_000), 1.5)
    runner.on_result(
        Result(call_id="b", outcome=Outcome.RAISED, error=RemoteError("ValueError", "no"), execute_ns=30_000_000), 1.6
    )
    gathering = runner_of(io, batching=Batching(max_batch_size=2, wait_ms=50))
    for call in ("x", "y"):
        gathering.add(accepted(run(call), 2.0), 2.0)
    (batch,) = io.of(InvokeBatch)
    items = tuple(GuestItemResult(call_id=call, output=b"\x01") for call, _ in batch.items)
    gathering.on_batch_result(BatchResult(batch=batch.batch, results=items, execute_ns=5_000_000), 2.5)

    assert io.batches == [(3, 500.0), (2, 500.0)]
