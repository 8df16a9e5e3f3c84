"""Waiting for what rings no bell: another process, a task of nobody's, an expiry."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Literal, TypeVar

T = TypeVar("T")

LOOK_EVERY_S = 0.005
ASK_FIRST_S, ASK_LAST_S = 0.01, 0.1
"""Between two questions that cost somebody something: the longer nothing has come, the more seldom they are put."""


def pauses_between_questions() -> Iterator[float]:
    """Seconds, without end."""
    pause = ASK_FIRST_S
    while True:
        yield pause
        pause = min(pause * 1.3, ASK_LAST_S)


async def until(condition: Callable[[], object], within: float = 30.0) -> None:
    """Look until the condition is true; TimeoutError if it never is."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(LOOK_EVERY_S)


async def until_found(ask: Callable[[], Awaitable[T | Literal[False] | None]], within: float = 30.0) -> T:
    """Ask until there is an answer, which is returned; TimeoutError if it stays None or False."""
    async with asyncio.timeout(within):
        pauses = pauses_between_questions()
        while (found := await ask()) is None or found is False:  # noqa: ASYNC110
            await asyncio.sleep(next(pauses))
        return found


def wait_until(condition: Callable[[], T | Literal[False] | None], what: str, within_s: float = 60.0) -> T:
    """Ask until the answer is true, which is returned; AssertionError says what never came. It needs no loop."""
    end, pauses = time.monotonic() + within_s, pauses_between_questions()
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(next(pauses))
    raise AssertionError(f"not within {within_s:.0f} s: {what}")
