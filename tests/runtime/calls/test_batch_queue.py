"""The batches of one container."""

from __future__ import annotations

from collections import deque

import pytest

from pilotlight_core.model import values
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.spec import Batching
from pilotlight_core.model.tracing.kept_call import MOST_MATES
from pilotlight_core.model.tracing.trace_context import context_within
from pilotlight_runtime.calls import batch_queue
from pilotlight_runtime.calls.batch_queue import DynamicBatches, traced_mates
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.guest.frames import BatchResult, GuestItemResult
from tests.builders.calls import run
from tests.builders.specs import function_spec, method

TRACE = f"00-{'a' * 32}-{'b' * 16}-"


def batches(**batching: object) -> DynamicBatches:
    """Two batched methods and a plain one."""
    settings = Batching(**{"max_batch_size": 2, "wait_ms": 50.0, **batching})  # type: ignore[arg-type]
    methods = (method("rank", "rank", batching=settings), method("embed", "embed", batching=settings), method("plain"))
    return DynamicBatches(function_spec("f", *methods))


def call(name: str, of: str = "rank", at: float = 0.0, data: bytes = b"\x80") -> AcceptedCall:
    return AcceptedCall(run(name, method=of, input=data), at, at)


def ids(batch: batch_queue.DynamicBatch | None) -> list[str]:
    assert batch is not None
    return [item.call_id for item in batch.items]


def test_only_calls_of_batched_methods_wait_for_a_batch() -> None:
    """The others are the runner's."""
    queue = batches()
    assert queue.add(call("a"), 0.0)
    assert not queue.add(call("b", of="plain"), 0.0)
    assert queue.room() == 1


def test_the_batch_whose_first_call_waited_longest_goes_first() -> None:
    """And not before a plain call that was ready before it."""
    queue = batches(wait_ms=0.0)
    queue.add(call("late", of="embed", at=2.0), 2.0)
    queue.add(call("early", at=1.0), 1.0)

    assert queue.pop_due(3.0, before=0.5) is None
    assert ids(queue.pop_due(3.0, before=3.0)) == ["early"]
    assert ids(queue.pop_due(3.0, before=3.0)) == ["late"]


def test_the_guest_has_one_batch_of_a_method_at_a_time() -> None:
    """The next one grows meanwhile, and is due when the first is answered."""
    queue = batches()
    for name in "abcd":
        queue.add(call(name), 0.0)
    first = queue.pop_due(0.0, before=0.0)
    assert ids(first) == ["a", "b"]
    assert queue.pop_due(0.0, before=0.0) is None
    assert queue.next_due_at(0.0) is None

    results = tuple(GuestItemResult(call_id=name) for name in "ab")
    assert queue.finish(BatchResult(batch=1, results=results), 1.0) is first
    assert ids(queue.pop_due(1.0, before=1.0)) == ["c", "d"]


@pytest.mark.parametrize("names", ["ba", "a", "abc"])
def test_results_that_are_not_the_batchs_items_end_nothing(names: str) -> None:
    """One for each item, in order."""
    queue = batches()
    for name in "ab":
        queue.add(call(name), 0.0)
    queue.pop_due(0.0, before=0.0)

    results = tuple(GuestItemResult(call_id=name) for name in names)
    assert queue.finish(BatchResult(batch=1, results=results), 1.0) is None
    assert queue.finish(BatchResult(batch=9, results=results), 1.0) is None


def test_a_call_that_is_taken_out_is_in_no_batch() -> None:
    """And is taken out once."""
    queue = batches()
    gone, stays = call("gone"), call("stays")
    queue.add(gone, 0.0)
    queue.add(stays, 0.0)

    assert queue.remove(gone)
    assert not queue.remove(gone)
    queue.stop_waiting()
    assert ids(queue.pop_due(0.0, before=0.0)) == ["stays"]


def test_inputs_that_do_not_fit_one_frame_wait_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first always goes, however large it is."""
    monkeypatch.setattr(batch_queue, "BATCH_BYTES", 10)
    queue = batches(max_batch_size=3)
    for name, size in (("a", 6), ("b", 6), ("c", 1)):
        queue.add(call(name, data=values.encode({"x": "y" * size})), 0.0)

    assert ids(queue.pop_due(0.0, before=0.0)) == ["a"]
    assert queue.room() == 1


def test_an_item_that_is_run_alone_cannot_be_split_again() -> None:
    """The rest follows it; a discarded batch leaves its method free."""
    queue = batches()
    single = queue.begin_single(call("a"), deque([call("b")]))

    assert ids(single) == ["a"]
    assert [item.call_id for item in single.rest] == ["b"]
    assert not single.can_split
    queue.discard(single)
    queue.add(call("c"), 0.0)
    queue.stop_waiting()
    assert ids(queue.pop_due(0.0, before=0.0)) == ["c"]


def test_what_a_call_costs_is_read_from_its_input() -> None:
    """A method with max_batch_cost has fewer items where they cost more."""
    queue = batches(max_batch_size=9, max_batch_cost=5.0, cost_of="len:texts")
    for name in "ab":
        queue.add(call(name, data=values.encode({"texts": ["x"] * 3})), 0.0)

    assert ids(queue.pop_due(0.0, before=0.0)) == ["a"]


def accepted(name: str, traceparent: str = "") -> AcceptedCall:
    return AcceptedCall(run(name, traceparent=traceparent), 0.0, 0.0)


@pytest.mark.parametrize(
    ("traceparent", "outcome", "took_ms", "level_ms", "is_told"),
    [
        ("", Outcome.OK, 10.0, None, False),
        (TRACE + "00", Outcome.OK, 10.0, None, False),
        (TRACE + "01", Outcome.OK, 10.0, None, True),
        ("", Outcome.RAISED, 10.0, None, True),
        ("", Outcome.OK, 1_000.0, None, True),
        ("", Outcome.OK, 1_000.0, 2_000.0, False),
        ("", Outcome.OK, 60.0, 50.0, True),
    ],
)
def test_a_batch_is_told_of_a_call_that_somebody_may_ask_about(
    traceparent: str, outcome: Outcome, took_ms: float, level_ms: float | None, is_told: bool
) -> None:
    """One that is sampled, has failed, or took longer than its function's level. By the spans of their execution."""
    call, other = accepted("one", traceparent), accepted("two", TRACE + "01 congo=1")
    found = traced_mates(call, [call, other], outcome, took_ms, level_ms)
    assert found == ((context_within("two", TRACE + "01").header,) if is_told else ())


def test_of_a_large_batch_no_more_than_the_bound_are_told() -> None:
    batch = [accepted(f"call_{number}") for number in range(100)]
    assert len(traced_mates(batch[0], batch, Outcome.DIED, 1.0, None)) == MOST_MATES
