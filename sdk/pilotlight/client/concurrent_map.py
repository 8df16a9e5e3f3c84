"""Maps: many calls at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

import msgspec

WINDOW = 64
"""Concurrent calls; more gain nothing where calls are short."""
MAX_WINDOW = 512
_END: Any = object()

Call = Callable[[tuple[Any, ...]], Awaitable[Any]]


class MapOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The end of call number `index`; `fatal`: the iterable of inputs raised `error`."""

    index: int
    answer: Any = None
    error: Exception | None = None
    fatal: bool = False

    def unpack(self, *, keep_exceptions: bool) -> Any:
        """Return the answer or the kept exception, or raise it."""
        if self.error is None:
            return self.answer
        if keep_exceptions and not self.fatal:
            return self.error
        raise self.error


Outcomes = asyncio.Queue[MapOutcome]


def window_of(batch_size: int | None) -> int:
    """Return the number of concurrent calls: two batches at least, one that runs and one that forms."""
    return min(MAX_WINDOW, max(WINDOW, 2 * (batch_size or 0)))


async def map_calls(
    call: Call,
    inputs: Iterable[Iterable[Any]],
    *,
    window: int = WINDOW,
    ordered: bool = True,
    keep_exceptions: bool = False,
) -> AsyncGenerator[Any, None]:
    """Yield the answers of `call` for each of `inputs`, in order or as they arrive.

    At most `window` calls run. Inputs are read as needed, in a thread. The first exception ends the other calls, unless
    exceptions are kept in place of answers.
    """
    room = asyncio.Semaphore(window)
    outcomes: Outcomes = asyncio.Queue()
    driver = asyncio.create_task(_start_calls(call, iter(inputs), room, outcomes))
    arriving = _in_order(outcomes) if ordered else _as_they_come(outcomes)
    try:
        async for outcome in arriving:
            room.release()
            yield outcome.unpack(keep_exceptions=keep_exceptions)
        await driver  # it has ended: this raises what broke it off
    finally:
        # This generator is the driver's parent: whichever way it is left, the driver and its calls end first.
        driver.cancel()
        await asyncio.wait([driver])


async def _start_calls(call: Call, inputs: Iterator[Iterable[Any]], room: asyncio.Semaphore, to: Outcomes) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            index = 0
            while True:
                await room.acquire()
                try:
                    # In a thread, for what the caller iterates over may block or make calls of its own.
                    item = await asyncio.to_thread(next, inputs, _END)
                    if item is _END:
                        break
                    arguments = tuple(item)
                except Exception as error:  # noqa: BLE001 - it is raised where the answers are read
                    to.put_nowait(MapOutcome(index=index, error=error, fatal=True))
                    break
                group.create_task(_run_call(call, index, arguments, to))
                index += 1
    finally:
        to.put_nowait(_END)  # also after a crash, which the reader of the answers raises


async def _run_call(call: Call, index: int, arguments: tuple[Any, ...], to: Outcomes) -> None:
    try:
        outcome = MapOutcome(index=index, answer=await call(arguments))
    except Exception as error:  # noqa: BLE001 - it is raised, or given, where the answers are read
        outcome = MapOutcome(index=index, error=error)
    to.put_nowait(outcome)


async def _as_they_come(outcomes: Outcomes) -> AsyncIterator[MapOutcome]:
    while (outcome := await outcomes.get()) is not _END:
        yield outcome


async def _in_order(outcomes: Outcomes) -> AsyncIterator[MapOutcome]:
    early: dict[int, MapOutcome] = {}
    turn = 0
    async for outcome in _as_they_come(outcomes):
        early[outcome.index] = outcome
        while turn in early:
            yield early.pop(turn)
            turn += 1
