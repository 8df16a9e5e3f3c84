"""The table: a call either never began or ran, whatever arrives when."""

from __future__ import annotations

import threading

from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_runtime.guest.call_table import CallProgress, CallTable
from pilotlight_runtime.guest.frames import CancelCall, Invoke, InvokeBatch, Result, WindowUpdate

CALL = Invoke(call_id="a")


def begun(table: CallTable) -> CallProgress:
    """The progress of CALL, which has begun."""
    table.take(CALL)
    progress = table.begin(CALL)
    assert progress is not None
    return progress


def test_a_call_cancelled_before_it_begins_never_begins() -> None:
    """Its Result is due at once, and no worker gets it."""
    table = CallTable()
    table.take(CALL)

    assert table.apply(CancelCall(call_id="a")) == Result(call_id="a", outcome=Outcome.CANCELLED, started=False)
    assert table.apply(CancelCall(call_id="a")) is None
    assert table.begin(CALL) is None
    assert table.held == 0


def test_a_call_granted_again_after_its_cancel_begins_once() -> None:
    """Both Invokes wait for a worker, and one Result is due."""
    table = CallTable()
    table.take(CALL)
    table.apply(CancelCall(call_id="a"))
    table.take(CALL)

    assert table.begin(CALL) is not None
    assert table.begin(CALL) is None


def test_a_running_call_is_cancelled_once() -> None:
    """Cancelled after it began, it answers itself; a second cancel changes nothing."""
    table = CallTable()
    progress = begun(table)
    wakes: list[bool] = []
    progress.wake = lambda: wakes.append(progress.cancelled)

    assert table.apply(CancelCall(call_id="a")) is None
    assert table.apply(CancelCall(call_id="a")) is None
    assert wakes == [True]
    table.end(CALL)
    assert table.held == 0


def test_unknown_calls_are_ignored() -> None:
    """Cancels and windows may come after the end."""
    table = CallTable()

    assert table.apply(CancelCall(call_id="gone")) is None
    assert table.apply(WindowUpdate(call_id="gone", upto=3)) is None


def test_a_batch_drops_its_cancelled_items() -> None:
    """Its answer tells of them; the items of another batch are not concerned."""
    table = CallTable()
    batch = InvokeBatch(batch=1, method="m", items=(("a", b""), ("b", b"")))
    other = InvokeBatch(batch=2, method="n", items=(("c", b""),))
    table.take(batch)
    table.take(other)

    assert table.apply(CancelCall(call_id="b")) is None
    assert table.apply(WindowUpdate(call_id="a", upto=1)) is None
    assert (table.dropped(batch), table.dropped(other)) == ({"b"}, set())
    table.end(batch)
    assert table.held == 1


def test_a_window_opens_for_a_thread_that_waits() -> None:
    """A chunk waits until the reader has the one a window before it."""
    table = CallTable()
    progress = begun(table)
    assert progress.wait_read(0)
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(progress.wait_read(1)))
    waiter.start()
    table.apply(WindowUpdate(call_id="a", upto=1))
    waiter.join(10)

    assert answers == [True]


def test_an_older_window_update_closes_no_window() -> None:
    """What the reader has, it keeps."""
    table = CallTable()
    progress = begun(table)
    table.apply(WindowUpdate(call_id="a", upto=5))
    table.apply(WindowUpdate(call_id="a", upto=3))

    assert progress.wait_read(5)


def test_a_cancel_ends_the_wait() -> None:
    """A thread that waits for a reader that has gone is let go."""
    table = CallTable()
    progress = begun(table)
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(progress.wait_read(1)))
    waiter.start()
    table.apply(CancelCall(call_id="a"))
    waiter.join(10)

    assert answers == [False]
