"""Compare-and-set loops: read, decide, write, and all of it anew while somebody else was first."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pilotlight_core.bus.bus_errors import KeyConflict

TRIES = 16
"""Of those who get in each other's way at least one succeeds each time."""
PAUSE_S = 0.01
"""The longest pause after the first lost try, twice as much after the second, and so on: drawn at random, so that those
who met once do not meet again."""

T = TypeVar("T")


async def retry_conflicts(
    attempt: Callable[[], Awaitable[T]],
    *,
    tries: int = TRIES,
    conflict: type[Exception] = KeyConflict,
    failed: Exception | None = None,
) -> T:
    """The result of `attempt`, which reads, decides and writes; it is called again while it raises `conflict`.

    Raises:
        Exception: after `tries` calls `failed`, or the last conflict itself; at once whatever else `attempt` raises.
    """
    for tried in range(1, tries):
        try:
            return await attempt()
        except conflict:
            await asyncio.sleep(random.uniform(0.0, tried * PAUSE_S))
    try:
        return await attempt()
    except conflict:
        if failed is None:
            raise
        raise failed from None
