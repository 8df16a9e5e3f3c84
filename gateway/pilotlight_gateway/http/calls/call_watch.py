"""A unary call ends when its caller hangs up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import structlog
from starlette.types import Receive

from pilotlight_gateway.http.protocol.event_answers import wait_gone
from pilotlight_gateway.http.protocol.request_bodies import ClientGone

T = TypeVar("T")
log = structlog.get_logger(__name__)
WATCH_AFTER = 0.05
"""Seconds after which a caller is watched: most calls are over by then and save the task."""


async def unless_gone(receive: Receive, work: Awaitable[T], task: asyncio.Task[Any]) -> T:
    """The result of `work`; `task`, the current one, is cancelled when the client hangs up.

    Raises:
        ClientGone: when it does.
    """
    watch = _Watch(receive, task)
    try:
        return await work
    except asyncio.CancelledError:
        if watch.gone and task.uncancel() == 0:
            raise ClientGone from None
        raise
    finally:
        watch.stop()


class _Watch:
    """Cancels the task that made it; belongs to it, and ends with it.

    Once stopped it knows neither its timer nor its task: both know it, and each would be a cycle per call for the
    garbage collector, which stops the loop for tens of milliseconds to find them.
    """

    __slots__ = ("_caller", "_receive", "_start", "_task", "gone")

    def __init__(self, receive: Receive, task: asyncio.Task[Any]) -> None:
        self.gone = False
        self._receive = receive
        self._caller = task
        self._task: asyncio.Task[Any] | None = None
        self._start: asyncio.TimerHandle | None = task.get_loop().call_later(WATCH_AFTER, self._begin)

    def stop(self) -> None:
        if self._start is not None:
            self._start.cancel()
        if self._task is not None:
            self._task.cancel()
        self._start = self._task = None

    def _begin(self) -> None:
        self._start = None
        self._task = self._caller.get_loop().create_task(self._watch())

    async def _watch(self) -> None:
        try:
            await wait_gone(self._receive)
        except ClientGone:
            self.gone = True
            self._caller.cancel()
        except Exception:  # nobody else reads it, and the call's answer may still be wanted
            log.exception("the caller of a call is watched no more")
