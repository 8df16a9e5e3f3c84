"""Looks again and again at what people are told of: worth less than the calls that go on, so a fault ends nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog

from pilotlight_core.bus import BusError
from pilotlight_core.model.errors import PilotlightError

log = structlog.get_logger(__name__)


@asynccontextmanager
async def refreshing(refresh: Callable[[], Awaitable[None]], every_s: float, at_what: str) -> AsyncIterator[None]:
    """Refresh each `every_s` seconds until the block ends; `at_what`: for the log."""
    async with asyncio.TaskGroup() as group:
        always = group.create_task(_refresh_always(refresh, every_s, at_what))
        try:
            yield
        finally:
            always.cancel()


async def _refresh_always(refresh: Callable[[], Awaitable[None]], every_s: float, at_what: str) -> None:
    while True:
        await asyncio.sleep(every_s)
        try:
            await refresh()
        except (BusError, PilotlightError) as error:
            log.info("it is looked at later", what=at_what, error=str(error))
        except Exception:
            log.exception("it could not be looked at", what=at_what)
