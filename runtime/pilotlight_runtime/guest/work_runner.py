"""Running the tenant's code for one call or batch, on the present thread."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from typing import Any, Protocol

from pilotlight_runtime.guest.bound_calls import BoundCall, ColumnBatch, prepared
from pilotlight_runtime.guest.call_table import CallTable, GuestBatch, GuestCall, GuestWork
from pilotlight_runtime.guest.frames import MAX_CHUNK, BatchResult, ChunkOut, GuestFrame, Result
from pilotlight_runtime.guest.guest_target import GuestTarget
from pilotlight_runtime.guest.result_frames import answered, cancelled, encoded, failed, streamed

now = time.perf_counter_ns


class ReplyChannel(Protocol):
    """What running code needs of the connection."""

    def send(self, frame: GuestFrame) -> None:
        """Send a frame whole."""

    def read_cancels(self) -> None:
        """Take note of cancels that have arrived."""

    def wait_window(self, call: GuestCall, seq: int) -> bool:
        """Wait until chunk `seq` may be sent; False if it never may."""
        ...


def run_work(
    target: GuestTarget, work: GuestWork, table: CallTable, channel: ReplyChannel
) -> Result | BatchResult | None:
    """Run a call or a batch to its end, unless it was cancelled before; None if its Result has been sent already."""
    if not table.begin(work):
        table.end(work)
        return work.unstarted() if isinstance(work, GuestBatch) else None
    frame = run_call(target, work, channel) if isinstance(work, GuestCall) else run_batch(target, work, channel)
    table.end(work)
    return frame


def run_call(target: GuestTarget, call: GuestCall, channel: ReplyChannel) -> Result:
    """Run one call to its end; chunks of a stream are sent on the way. Never raises."""
    began = now()
    try:
        ready = prepared(target, call)
        if ready.method.streams:
            return _run_stream(ready, call, channel)
        began = now()
        value = ready()
        spent = now() - began
        channel.read_cancels()
        return answered(call, value, spent)
    except BaseException as error:  # noqa: BLE001 - SystemExit in a call is that call's failure
        return failed(call, error, now() - began)


def _run_stream(ready: BoundCall, call: GuestCall, channel: ReplyChannel) -> Result:
    began = now()
    seq = 0
    chunks: Iterator[Any] | None = None
    try:
        chunks = iter(ready())
        for value in chunks:
            channel.read_cancels()
            if call.cancelled or not channel.wait_window(call, seq + 1):
                return cancelled(call, now() - began, seq)
            channel.send(ChunkOut(call_id=call.frame.call_id, seq=seq + 1, data=encoded(value, MAX_CHUNK)))
            seq += 1
        return streamed(call, now() - began, seq)
    except BaseException as error:  # noqa: BLE001 - as in run_call
        return failed(call, error, now() - began, seq)
    finally:
        _close(chunks)


def _close(chunks: Iterator[Any] | None) -> None:
    """Run the generator's `finally` blocks. What they raise goes into the tenant's log: the call has its answer."""
    try:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    except BaseException:  # noqa: BLE001 - it is the tenant's code
        traceback.print_exc()


def run_batch(target: GuestTarget, batch: GuestBatch, channel: ReplyChannel) -> BatchResult:
    """Run one batch to its end. Never raises."""
    columns = ColumnBatch(target, batch)
    began = now()
    try:
        if columns.calls:
            value = columns.ready()()
            spent = now() - began
            channel.read_cancels()
            columns.answer(value)
            return columns.result(spent)
    except BaseException as error:  # noqa: BLE001 - as in run_call
        columns.fail(error)
    return columns.result(now() - began)
