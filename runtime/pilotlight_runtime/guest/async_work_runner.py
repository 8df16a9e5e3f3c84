"""`work_runner`, for functions that run in an event loop."""

from __future__ import annotations

import asyncio
import math
import traceback
from functools import partial
from typing import Any, Protocol

from pilotlight_core.model.engines.call_facts import CALL_FACTS
from pilotlight_core.model.messages.running_code import COUNTING, IN_BATCH, RUNNING_CALL, RUNNING_ITEMS, RUNNING_TRACE
from pilotlight_core.model.streams.running_stream import RUNNING_STREAM
from pilotlight_runtime.guest.call_table import WINDOW_WAIT_S, CallProgress, CallTable
from pilotlight_runtime.guest.frames import (
    BatchResult,
    GuestFrame,
    GuestWork,
    Invoke,
    InvokeBatch,
    Result,
)
from pilotlight_runtime.guest.guest_target import GuestTarget
from pilotlight_runtime.guest.stream_out import StreamOut
from pilotlight_runtime.guest.work_runner import (
    ColumnBatch,
    answered,
    cancelled,
    encoded_chunk,
    failed,
    now,
    prepared,
    streamed,
    unstarted,
    with_units,
)


class FrameSender(Protocol):
    """What running code needs of the connection."""

    def send(self, frame: GuestFrame) -> None: ...

    def send_soon(self, frame: GuestFrame) -> None:
        """Send a frame with others of this turn of the loop, in order with all others."""
        ...


async def run_async_work(
    target: GuestTarget, work: GuestWork, table: CallTable, out: FrameSender, task: asyncio.Task[Any]
) -> Result | BatchResult | None:
    """As `run_work`, in the present `task`: asking asyncio for it costs a system call."""
    if isinstance(work, Invoke):
        progress = table.begin(work)
        if progress is None:
            return None
        COUNTING.set(progress)
        RUNNING_CALL.set(work.call_id)
        RUNNING_TRACE.set(work.traceparent)
        if work.facts is not None:
            CALL_FACTS.set(work.facts)
        frame: Result | BatchResult = with_units(await run_async_call(target, work, progress, out, task), progress)
    else:
        frame = await run_async_batch(target, work, table.dropped(work))
    table.end(work)
    return frame


async def run_async_call(
    target: GuestTarget, call: Invoke, progress: CallProgress, out: FrameSender, task: asyncio.Task[Any]
) -> Result:
    """Run one call in the present `task`, which a cancel interrupts. Raises what `out` raises."""
    began = now()
    try:
        method, ready = prepared(target, call)
        if method.streams:
            return await _run_stream(ready, call, progress, out, task)
        began = now()
        progress.wake = partial(_interrupt, progress, task)
        value = await ready()
        return answered(call, progress, value, now() - began)
    except BaseException as error:  # noqa: BLE001 - SystemExit in a call is that call's failure
        return failed(call, progress, error, now() - began)


async def _run_stream(
    ready: partial[Any], call: Invoke, progress: CallProgress, sender: FrameSender, task: asyncio.Task[Any]
) -> Result:
    began = now()
    out = StreamOut(call, sender.send, sender.send_soon, quick_s=math.inf)
    progress.read_seq = max(progress.read_seq, out.seq)
    RUNNING_STREAM.set(out)
    moved = asyncio.Event()
    chunks: Any = None
    try:
        progress.wake = partial(_interrupt, progress, task, moved)
        chunks = ready()
        async for value in chunks:
            data = encoded_chunk(out, value)
            if out.needs_read > progress.read_seq:
                await _wait_read(progress, out.needs_read, moved)
            out.send_chunk(data)
        return streamed(call, progress, now() - began, out.seq)
    except _Stalled:
        return cancelled(call, now() - began, out.seq)
    except BaseException as error:  # noqa: BLE001 - as in run_async_call
        return failed(call, progress, error, now() - began, out.seq)
    finally:
        progress.wake = None
        await _close(chunks, task)


class _Stalled(Exception):
    """A stream without a reader."""


async def _wait_read(progress: CallProgress, seq: int, moved: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(WINDOW_WAIT_S):
            while seq > progress.read_seq:
                moved.clear()
                await moved.wait()
    except TimeoutError as error:
        raise _Stalled from error


def _interrupt(progress: CallProgress, task: asyncio.Task[Any], moved: asyncio.Event | None = None) -> None:
    if progress.cancelled:
        task.cancel()
    elif moved is not None:
        moved.set()


async def _close(chunks: Any, task: asyncio.Task[Any]) -> None:
    while task.uncancel():
        pass  # the cancellation has arrived; what is awaited from here on is the clean-up
    try:
        if hasattr(chunks, "aclose"):
            await chunks.aclose()
    except BaseException:  # noqa: BLE001 - it is the tenant's code
        traceback.print_exc()


async def run_async_batch(target: GuestTarget, batch: InvokeBatch, dropped: set[str]) -> BatchResult:
    """Run one batch in the present task. Never raises."""
    if len(dropped) == len(batch.items):
        return unstarted(batch)
    columns = ColumnBatch(target, batch, dropped)
    COUNTING.set(columns)
    RUNNING_CALL.set(IN_BATCH)
    RUNNING_ITEMS.set(columns)
    began = now()
    try:
        if columns.calls:
            value = await columns.ready()()
            spent = now() - began
            columns.answer(value)
            return columns.result(spent)
    except BaseException as error:  # noqa: BLE001 - as in run_async_call
        columns.fail(error)
    return columns.result(now() - began)
