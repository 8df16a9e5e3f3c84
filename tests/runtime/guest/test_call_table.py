"""The table: a call either never began or ran, whatever arrives when."""

from __future__ import annotations

import threading

from pilotlight_core.model.messages.agent_messages import Outcome
from pilotlight_runtime.guest.call_table import CallTable, GuestBatch, GuestCall
from pilotlight_runtime.guest.frames import CancelCall, Invoke, InvokeBatch, Result, WindowUpdate


def taken(table: CallTable, name: str, window: int = 2) -> GuestCall:
    """A call on the table."""
    call = table.take(Invoke(call_id=name, window=window))
    assert isinstance(call, GuestCall)
    return call


def test_a_call_cancelled_before_it_begins_never_begins() -> None:
    """Its Result is due at once, and no worker gets it."""
    table = CallTable()
    call = taken(table, "a")

    assert table.apply(CancelCall(call_id="a")) == Result(call_id="a", outcome=Outcome.CANCELLED, started=False)
    assert not table.begin(call)
    assert table.held == 0


def test_a_running_call_is_told_once() -> None:
    """Cancelled after it began, it answers itself; a second cancel changes nothing."""
    table = CallTable()
    call = taken(table, "a")
    assert table.begin(call)

    assert table.apply(CancelCall(call_id="a")) is None
    assert table.apply(CancelCall(call_id="a")) is None
    assert call.cancelled


def test_unknown_calls_are_ignored() -> None:
    """Cancels and windows may come after the end."""
    table = CallTable()

    assert table.apply(CancelCall(call_id="gone")) is None
    assert table.apply(WindowUpdate(call_id="gone", upto=3)) is None


def test_a_batch_loses_dropped_items() -> None:
    """Cancelled items are not given to the code; without any item it never begins."""
    table = CallTable()
    batch = table.take(InvokeBatch(batch=1, method="m", items=(("a", b""), ("b", b""))))
    assert isinstance(batch, GuestBatch)
    table.apply(CancelCall(call_id="a"))
    assert [call for call, _ in batch.wanted()] == ["b"]
    table.apply(CancelCall(call_id="b"))

    assert not table.begin(batch)
    assert not batch.unstarted().started
    assert [item.outcome for item in batch.unstarted().results] == ["cancelled", "cancelled"]
    table.end(batch)
    assert table.held == 0


def test_a_window_opens_for_who_waits() -> None:
    """A thread that may not send waits until it may."""
    table = CallTable()
    call = taken(table, "a", window=2)
    assert call.may_send(2)
    assert not call.may_send(3)
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(call.wait_window(3)))
    waiter.start()
    table.apply(WindowUpdate(call_id="a", upto=1))
    waiter.join(10)

    assert answers == [True]


def test_a_cancel_ends_the_wait() -> None:
    """A thread that waits for a reader that has gone is let go."""
    table = CallTable()
    call = taken(table, "a", window=0)
    table.begin(call)
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(call.wait_window(1)))
    waiter.start()
    table.apply(CancelCall(call_id="a"))
    waiter.join(10)

    assert answers == [False]
