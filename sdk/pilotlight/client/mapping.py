"""Many calls at once: as many as there is room for, in order or as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

import msgspec

IN_FLIGHT = 64
"""Each holds a connection, and more of them gain nothing where calls are short."""
MAX_IN_FLIGHT = 512
_END: Any = object()

Call = Callable[[tuple[Any, ...]], Awaitable[Any]]


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """How call number `index` ended; `fatal` is an error of the inputs themselves."""

    index: int
    answer: Any = None
    error: Exception | None = None
    fatal: bool = False

    def take(self, *, keep_exceptions: bool) -> Any:
        """The answer, or the exception in its place."""
        if self.error is None:
            return self.answer
        if keep_exceptions and not self.fatal:
            return self.error
        raise self.error


Finished = asyncio.Queue[Done]


def in_flight(batch_size: int | None) -> int:
    """How many calls run at a time: of a batched function two batches, one that runs and one that forms."""
    return min(MAX_IN_FLIGHT, max(IN_FLIGHT, 2 * (batch_size or 0)))


async def map_calls(
    call: Call,
    inputs: Iterable[Iterable[Any]],
    *,
    window: int = IN_FLIGHT,
    ordered: bool = True,
    keep_exceptions: bool = False,
) -> AsyncIterator[Any]:
    """The answers of `call` for each of `inputs`, which is read only as room appears: `window` are under way at most.

    The first exception ends the rest, unless exceptions are kept in place of answers.
    """
    room = asyncio.Semaphore(window)
    finished: Finished = asyncio.Queue()
    driver = asyncio.create_task(_drive(call, iter(inputs), room, finished))
    in_turn = _in_order(finished) if ordered else _as_they_come(finished)
    try:
        async for done in in_turn:
            room.release()
            yield done.take(keep_exceptions=keep_exceptions)
        await driver  # it has ended: this raises what broke it off
    finally:
        # This generator is the driver's parent: whichever way it is left, the driver and its calls end first.
        driver.cancel()
        await asyncio.wait([driver])


async def _drive(call: Call, inputs: Iterator[Iterable[Any]], room: asyncio.Semaphore, finished: Finished) -> None:
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
                    finished.put_nowait(Done(index=index, error=error, fatal=True))
                    break
                group.create_task(_one(call, index, arguments, finished))
                index += 1
    finally:
        finished.put_nowait(_END)  # also when it crashed: whoever reads the answers reads that then


async def _one(call: Call, index: int, arguments: tuple[Any, ...], finished: Finished) -> None:
    try:
        done = Done(index=index, answer=await call(arguments))
    except Exception as error:  # noqa: BLE001 - it is raised, or given, where the answers are read
        done = Done(index=index, error=error)
    finished.put_nowait(done)


async def _as_they_come(finished: Finished) -> AsyncIterator[Done]:
    while (done := await finished.get()) is not _END:
        yield done


async def _in_order(finished: Finished) -> AsyncIterator[Done]:
    early: dict[int, Done] = {}
    turn = 0
    async for done in _as_they_come(finished):
        early[done.index] = done
        while turn in early:
            yield early.pop(turn)
            turn += 1
