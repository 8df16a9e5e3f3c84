"""Keeps the last part of the jobs' bucket for the ends of stored jobs.

A record grows until its job ends, and a full bucket refuses that growth too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from pilotlight_core.bus import BusError

MOST_FILLED = 0.9
LOOK_EVERY_S = 1.0

log = structlog.get_logger(__name__)


class Headroom:
    """Remembers how full the bucket was last. `ask` returns that, from 0.0 to 1.0."""

    def __init__(self, ask: Callable[[], Awaitable[float]], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._full = False
        self._asked = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        """Whether the bucket had no room for new jobs when it was asked last."""
        if self._asking is None and self._clock() - self._asked >= LOOK_EVERY_S:
            self._asking = asyncio.get_running_loop().create_task(self._refresh())
        return self._full

    @property
    def looking(self) -> bool:
        """Whether the bucket is being asked."""
        return self._asking is not None

    async def _refresh(self) -> None:
        try:
            self._full = await self._ask() >= MOST_FILLED
        except BusError as error:
            log.debug("how full the bucket of jobs is is not known", error=str(error))
        except Exception:  # no other code awaits this task; the last answer holds until the next one
            log.exception("asking how full the bucket of jobs is failed")
        finally:
            self._asked, self._asking = self._clock(), None
