"""Many calls at once: as many as there is room for, in order or as they come."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

IN_FLIGHT = 64
MAX_IN_FLIGHT = 512
_DONE: Any = object()


def in_flight(batch_size: int | None) -> int:
    """How many calls run at a time: of a batched function two batches, one that runs and one that forms."""
    return min(MAX_IN_FLIGHT, max(IN_FLIGHT, 2 * (batch_size or 0)))


async def map_calls(
    call: Callable[[tuple[Any, ...]], Awaitable[Any]],
    inputs: Iterable[Iterable[Any]],
    *,
    batch_size: int | None = None,
    ordered: bool = True,
    keep_exceptions: bool = False,
) -> AsyncIterator[Any]:
    """The answers of `call` for each of `inputs`.

    `inputs` is read in a thread of its own, one ahead of the calls, for it may block. The first exception ends the
    rest, unless exceptions are kept in place of answers.
    """
    iterator = iter(inputs)
    window = asyncio.Semaphore(in_flight(batch_size))
    finished: asyncio.Queue[asyncio.Future[Any]] = asyncio.Queue()
    started: deque[asyncio.Future[Any]] = deque()
    feeding = asyncio.ensure_future(_feed(call, iterator, window, started, finished, ordered=ordered))
    try:
        while (future := await finished.get()) is not _DONE:
            try:
                answer = await future
            except Exception as error:
                if not keep_exceptions:
                    raise
                answer = error
            window.release()
            yield answer
        await feeding
    finally:
        feeding.cancel()
        for future in started:
            future.cancel()
        await asyncio.gather(feeding, *started, return_exceptions=True)


async def _feed() -> None: ...
