"""Runs the work of a duty under its lease, in one process at a time.

A process that stood still notices the loss of its lease late: work that must not happen twice checks `lease.valid`
before it acts, or writes under a revision.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from pilotlight_core.bus import Bus, BusError, Lease

RETRY_AFTER_S = 1.0

LeasedWork = Callable[[Lease], Awaitable[None]]

log = structlog.get_logger(__name__)


class _Interrupted(Exception):
    """The lease was lost, or the bus reconnected."""


async def while_leased(
    bus: Bus,
    lease: Lease,
    work: LeasedWork,
    *,
    retried: tuple[type[Exception], ...] = (BusError,),
    retry_after_s: float = RETRY_AFTER_S,
) -> None:
    """Run `work` whenever the lease is held, until cancelled.

    * Lease lost: `work` is cancelled, and the lease acquired again.
    * Bus reconnected: `work` is cancelled and runs again at once, since streams may have been replaced.
    * `work` returned or raised one of `retried`: it runs again after `retry_after_s`, under the same lease.
    * `work` raised another error: the lease is released, and the error raised.
    """
    reconnected = asyncio.Event()

    async def note_reconnect() -> None:
        reconnected.set()

    async with bus.listening(reconnected=note_reconnect):
        while True:
            async with lease:
                while lease.valid(time.monotonic()):
                    reconnected.clear()
                    interrupted = False
                    try:
                        interrupted = await _run_until(work(lease), lease.lost, reconnected)
                    except* retried:
                        log.exception("a duty was cut off; it begins anew", duty=lease.key)
                    if not interrupted:
                        await asyncio.sleep(retry_after_s)


async def _run_until(work: Awaitable[None], *events: asyncio.Event) -> bool:
    """Whether one of `events` interrupted `work`. Errors of `work` come in a group."""
    interrupted = False
    try:
        async with asyncio.TaskGroup() as group:
            watchers = [group.create_task(_raise_when(event)) for event in events]
            await work
            for watcher in watchers:
                watcher.cancel()
    except* _Interrupted:
        interrupted = True
    return interrupted


async def _raise_when(event: asyncio.Event) -> None:
    await event.wait()
    raise _Interrupted
