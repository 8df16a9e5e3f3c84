"""The background tasks of a connection, cancelled and awaited with it.

A task group would wrap every exception of its user's block in an exception group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)


class BackgroundTasks:
    def __init__(self, on_crash: Callable[[], None]) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_crash = on_crash

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def end(self, task: asyncio.Task[None]) -> None:
        """Cancel one task and wait for it."""
        task.cancel()
        await asyncio.wait([task])

    async def end_all(self) -> None:
        for task in list(self._tasks):
            await self.end(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.critical("a standing job of the bus crashed", exc_info=error)
            self._on_crash()
