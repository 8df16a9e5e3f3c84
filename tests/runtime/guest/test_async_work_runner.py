"""Calls and batches within an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from pilotlight_core.model import values
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.spec import Batching, Mode
from pilotlight_runtime.guest import async_work_runner
from pilotlight_runtime.guest.async_work_runner import run_async_work
from pilotlight_runtime.guest.call_table import CallTable
from pilotlight_runtime.guest.frames import (
    BatchResult,
    CancelCall,
    ChunkOut,
    GuestFrame,
    GuestItemResult,
    GuestWork,
    Invoke,
    InvokeBatch,
    Result,
    WindowUpdate,
)
from pilotlight_runtime.guest.guest_target import GuestTarget, target_of
from tests.builders.specs import function_spec, method


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def target(function: Callable[..., Any], **more: Any) -> GuestTarget:
    return target_of(function_spec("f", method(is_async=True, **more)), function)


def taken(table: CallTable, work: GuestWork) -> GuestWork:
    """The work, which is in the table."""
    table.take(work)
    return work


class Wave:
    """A stream that counts up, and says when it was closed."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self.waits = asyncio.Event()

    async def __call__(self) -> AsyncIterator[int]:
        try:
            for number in range(1, 4):
                yield number
        finally:
            self.closed.set()


class At:
    """A connection of which each frame is told at once."""

    def __init__(self, send: Callable[[GuestFrame], None]) -> None:
        self.send = self.send_soon = send


async def ran(
    calls: GuestTarget, work: GuestWork, table: CallTable, send: Callable[[GuestFrame], None]
) -> Result | BatchResult | None:
    """What the present task's work has come to."""
    task = asyncio.current_task()
    assert task is not None
    return await run_async_work(calls, work, table, At(send), task)


async def test_a_coroutine_is_awaited(anyio_backend: str) -> None:
    """And what it raises is its call's failure."""

    async def half(n: int) -> int:
        if n % 2:
            raise ValueError("odd")
        return n // 2

    table, calls = CallTable(), target(half)
    good = taken(table, Invoke(call_id="a", input=values.encode({"n": 4})))
    bad = taken(table, Invoke(call_id="b", input=values.encode({"n": 3})))
    results = [await ran(calls, work, table, _no_frame) for work in (good, bad)]

    assert [isinstance(frame, Result) and frame.outcome for frame in results] == [Outcome.OK, Outcome.RAISED]
    assert table.held == 0


async def test_a_call_cancelled_before_it_began_is_answered_already(anyio_backend: str) -> None:
    """By the frame that the cancel returns; the work itself says nothing more."""
    table = CallTable()
    work = taken(table, Invoke(call_id="a", input=values.encode({})))

    assert table.apply(CancelCall(call_id="a")) == Result(call_id="a", outcome=Outcome.CANCELLED, started=False)
    assert await ran(target(_forever), work, table, _no_frame) is None


async def test_a_running_call_is_interrupted_by_its_cancel(anyio_backend: str) -> None:
    """Where it awaits; its task is not."""
    began = asyncio.Event()

    async def wait() -> None:
        began.set()
        await asyncio.Event().wait()

    table = CallTable()
    work = taken(table, Invoke(call_id="a", input=values.encode({})))
    task = asyncio.create_task(ran(target(wait), work, table, _no_frame))
    await began.wait()
    table.apply(CancelCall(call_id="a"))

    frame = await task
    assert isinstance(frame, Result)
    assert frame.outcome is Outcome.CANCELLED


async def test_a_stream_waits_for_its_window_and_goes_on(anyio_backend: str) -> None:
    """Chunk by chunk as the reader reads."""
    table, wave, sent = CallTable(), Wave(), list[GuestFrame]()
    work = taken(table, Invoke(call_id="a", input=values.encode({}), window=1))

    def send(frame: GuestFrame) -> None:
        sent.append(frame)
        assert isinstance(frame, ChunkOut)
        asyncio.get_running_loop().call_soon(table.apply, WindowUpdate(call_id="a", upto=frame.seq))

    frame = await ran(target(wave, mode=Mode.GENERATOR), work, table, send)

    assert [values.decode(chunk.data) for chunk in sent if isinstance(chunk, ChunkOut)] == [1, 2, 3]
    assert isinstance(frame, Result)
    assert (frame.outcome, frame.last_seq) == (Outcome.OK, 3)


async def test_a_stream_that_nobody_reads_is_closed(anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its `finally` blocks run, and the call is cancelled."""
    monkeypatch.setattr(async_work_runner, "WINDOW_WAIT_S", 0.01)
    table, wave, sent = CallTable(), Wave(), list[GuestFrame]()
    work = taken(table, Invoke(call_id="a", input=values.encode({}), window=1))

    frame = await ran(target(wave, mode=Mode.GENERATOR), work, table, sent.append)

    assert isinstance(frame, Result)
    assert (frame.outcome, frame.last_seq, len(sent)) == (Outcome.CANCELLED, 1, 1)
    assert wave.closed.is_set()


async def test_a_batch_is_one_call_of_the_method(anyio_backend: str) -> None:
    """An answer for each item; all fail where it raises."""

    async def double(n: list[int]) -> list[int]:
        if 0 in n:
            raise ZeroDivisionError
        return [2 * each for each in n]

    table, calls = CallTable(), target(double, batching=Batching(max_batch_size=4))
    outcomes = []
    for number, items in enumerate(((1, 2), (0, 1))):
        frame = InvokeBatch(batch=number, method="", items=tuple((f"c{n}", values.encode({"n": n})) for n in items))
        result = await ran(calls, taken(table, frame), table, _no_frame)
        assert result is not None
        assert not isinstance(result, Result)
        outcomes.append([item.outcome for item in result.results])

    assert outcomes == [[Outcome.OK, Outcome.OK], [Outcome.RAISED, Outcome.RAISED]]


async def test_a_batch_whose_items_were_all_cancelled_never_begins(anyio_backend: str) -> None:
    """It is answered as a batch, item by item."""
    table = CallTable()
    work = taken(table, InvokeBatch(batch=4, method="", items=(("a", b""), ("b", b""))))
    for call_id in "ab":
        table.apply(CancelCall(call_id=call_id))

    frame = await ran(target(_forever, batching=Batching(max_batch_size=4)), work, table, _no_frame)
    items = tuple(GuestItemResult(call_id=call_id, outcome=Outcome.CANCELLED) for call_id in "ab")
    assert frame == BatchResult(batch=4, results=items, started=False)
    assert table.held == 0


def _no_frame(frame: GuestFrame) -> None:
    raise AssertionError(frame)


async def _forever() -> None:
    await asyncio.Event().wait()
