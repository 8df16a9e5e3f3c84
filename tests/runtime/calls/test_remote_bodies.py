"""Transfers with an origin's internal listener."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from structlog.testing import capture_logs

from pilotlight_core.model.messages.call_messages import BodyRef
from pilotlight_runtime.calls.remote_bodies import MAX_BODY, BodyTransfers
from tests.runtime.harness import listener


class Done:
    """A callback whose argument can be waited for."""

    def __init__(self) -> None:
        self.came: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def __call__(self, value: Any) -> None:
        self.came.set_result(value)

    async def value(self) -> Any:
        async with asyncio.timeout(30):
            return await self.came


async def test_a_body_is_fetched_once(anyio_backend: str) -> None:
    """And never again: the token is used up."""
    async with listener() as origin, asyncio.TaskGroup() as group:
        bodies = BodyTransfers(group)
        ref = origin.offer(b"x" * 1_000_000)
        first, second = Done(), Done()

        bodies.fetch(ref, first)
        assert await first.value() == b"x" * 1_000_000
        bodies.fetch(ref, second)
        assert await second.value() is None
        await bodies.close()


async def test_a_body_of_another_size_is_refused(anyio_backend: str) -> None:
    """Neither more nor less than the origin has said."""
    async with listener() as origin, asyncio.TaskGroup() as group:
        bodies = BodyTransfers(group)
        for size in (99, 101):
            done = Done()
            bodies.fetch(msgspec.structs.replace(origin.offer(b"x" * 100), size=size), done)
            assert await done.value() is None
        await bodies.close()


async def test_an_answer_is_left(anyio_backend: str) -> None:
    """Where the origin expects it, and nowhere else."""
    async with listener() as origin, asyncio.TaskGroup() as group:
        bodies = BodyTransfers(group)
        place = origin.expect("acme")
        left, nowhere, unexpected = Done(), Done(), Done()

        bodies.upload(place, b"answer", left)
        bodies.upload(None, b"answer", nowhere)
        assert await left.value() is True
        assert await nowhere.value() is False
        assert origin.answer(place) == b"answer"
        origin.withdraw(place)
        bodies.upload(place, b"again", unexpected)
        assert await unexpected.value() is False
        await bodies.close()


async def test_memory_is_bounded(anyio_backend: str) -> None:
    """What does not fit is refused at once, and room comes back when a transfer ends."""
    async with listener() as origin, asyncio.TaskGroup() as group:
        bodies = BodyTransfers(group, budget=150)
        first, second, third, huge = Done(), Done(), Done(), Done()

        bodies.fetch(origin.offer(b"x" * 100), first)
        bodies.fetch(origin.offer(b"y" * 100), second)
        bodies.fetch(BodyRef(url=origin.url, token="t", size=MAX_BODY + 1), huge)
        assert await second.value() is None
        assert await huge.value() is None
        assert await first.value() == b"x" * 100
        bodies.fetch(origin.offer(b"z" * 100), third)
        assert await third.value() == b"z" * 100
        await bodies.close()


async def test_an_origin_that_is_gone_gives_nothing(anyio_backend: str) -> None:
    """Nobody listens at its address, which the log names without the token."""
    with capture_logs() as logs:
        await _meet_nobody()

    assert [line["gateway"] for line in logs] == ["http://127.0.0.1:9"] * 2
    assert "secret" not in str(logs)


async def _meet_nobody() -> None:
    async with asyncio.TaskGroup() as group:
        bodies = BodyTransfers(group)
        fetched, left = Done(), Done()
        gone = BodyRef(url="http://127.0.0.1:9/bodies/secret", token="secret", size=1)

        bodies.fetch(gone, fetched)
        bodies.upload(gone, b"x", left)
        assert await fetched.value() is None
        assert await left.value() is False
        await bodies.close()
