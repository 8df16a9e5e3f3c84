"""Work is done once for all who ask for the same."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_gateway.dashboard.page_parts.shared_work import SharedWork, WorkResult
from tests.gateway.world import Clock


class Worker:
    """Gives numbers that rise, when it may."""

    def __init__(self, keep_s: float = 1.0, size: int = 0) -> None:
        self.done = 0
        self.may = asyncio.Event()
        self.may.set()
        self.keep_s = keep_s
        self.size = size

    async def __call__(self) -> WorkResult[int]:
        self.done += 1
        number = self.done
        await self.may.wait()
        if number < 0:
            raise AssertionError
        return WorkResult(number, self.keep_s, self.size)


async def test_who_goes_leaves_the_work_to_the_next() -> None:
    """And nothing runs that nobody waits for."""
    shared, worker = SharedWork[int](at_most=4, clock=Clock(0.0)), Worker()
    worker.may.clear()
    first = asyncio.ensure_future(shared.get("a", worker))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(shared.get("a", worker))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait((first,))
    worker.may.set()
    assert await second == 2
    assert await shared.get("a", worker) == 2
    assert worker.done == 2


async def test_what_is_not_to_be_kept_is_done_for_each() -> None:
    """Such as a refusal that concerns one of them alone."""
    shared, worker = SharedWork[int](at_most=4, clock=Clock(0.0)), Worker(keep_s=0.0)
    assert await asyncio.gather(*(shared.get("a", worker) for _ in range(3))) == [1, 2, 3]


async def test_work_that_raises_leaves_nothing() -> None:
    """Whoever waited does it anew."""
    shared: SharedWork[int] = SharedWork(at_most=4, clock=Clock(0.0))

    async def fail() -> WorkResult[int]:
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError):
            await shared.get("a", fail)
    assert len(shared) == 0


async def test_so_many_results_and_bytes_are_kept() -> None:
    """What somebody waits for stays; then the oldest go."""
    clock = Clock(0.0)
    shared, worker = SharedWork[int](at_most=3, clock=clock, most_bytes=100), Worker(size=60)
    held = Worker()
    held.may.clear()
    waiting = asyncio.ensure_future(shared.get("held", held))
    await asyncio.sleep(0)
    for name in "abcd":
        await shared.get(name, worker)
        assert len(shared) <= 3
    held.may.set()
    assert await waiting == 1
    clock.at = 2.0
    await shared.get("e", worker)
    assert len(shared) == 1
