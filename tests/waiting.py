"""Waiting for what rings no bell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], within: float = 30.0) -> None:
    """Ask until the answer is true; TimeoutError if it never is."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
