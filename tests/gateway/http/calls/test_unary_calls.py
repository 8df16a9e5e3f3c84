"""The watch over the caller of a unary call."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message
from structlog.testing import capture_logs

from pilotlight_gateway.http.calls.unary_calls import unless_gone
from pilotlight_gateway.http.protocol.http_exchange import ClientGone


def current_task() -> asyncio.Task[object]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def test_a_call_ends_when_its_caller_hangs_up() -> None:
    """Its work is cancelled, and its task goes on."""

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async with asyncio.timeout(30):
        with pytest.raises(ClientGone):
            await unless_gone(receive, asyncio.Event().wait(), current_task())


async def test_a_watch_that_fails_is_logged_and_costs_no_answer() -> None:
    """The call goes on without it."""
    failed = asyncio.Event()

    async def receive() -> Message:
        failed.set()
        raise ZeroDivisionError("a bug")

    async with asyncio.timeout(30):
        with capture_logs() as lines:
            assert await unless_gone(receive, failed.wait(), current_task())

    assert [line["exc_info"] for line in lines] == [True]
