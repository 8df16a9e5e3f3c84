"""Compare-and-set with retries: read, decide, write, and again after a conflict."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pilotlight_core.bus.bus_errors import KeyConflict

TRIES = 16
"""Of several writers in conflict at least one succeeds in each round."""
PAUSE_S = 0.01
"""The longest pause after the first conflict; it grows linearly. Pauses are random, so that two writers do not collide
again."""

T = TypeVar("T")


async def retry_conflicts(
    attempt: Callable[[], Awaitable[T]],
    *,
    tries: int = TRIES,
    conflict: type[Exception] = KeyConflict,
    failed: Exception | None = None,
) -> T:
    """The result of `attempt`, which reads, decides and writes, and is called again when it raises `conflict`.

    Raises:
        Exception: after `tries` conflicts `failed`, or else the last one; any other exception of `attempt` at once.
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
