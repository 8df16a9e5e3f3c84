"""Work under a lease, on a real server: what becomes of it when the lease goes and when the bus comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.bus import Bus, BusTimeout, Lease, connect
from pilotlight_core.bus.lease import LeaseRecord
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import LEASE_BUCKET
from pilotlight_gateway.leased import LeasedWork, while_leased
from pilotlight_supervisor.embedded_bus import embedded_nats
from tests.waiting import until

OTHER_HOLDER = msgspec.msgpack.encode(LeaseRecord(holder="a stranger"))


class Work:
    """Work that says when it begins and how it ends; what is in `outcomes` ends it at once, in this order."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.epochs: list[int] = []
        self.cancelled = 0

    async def __call__(self, lease: Lease) -> None:
        self.epochs.append(lease.epoch)
        if self.outcomes:
            outcome = self.outcomes.pop(0)
            if outcome is not None:
                raise outcome
            return
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1


@asynccontextmanager
async def leased(lease: Lease, bus: Bus, work: LeasedWork) -> AsyncIterator[asyncio.Task[None]]:
    """The work under the lease, for as long as the block lasts."""
    task = asyncio.ensure_future(while_leased(bus, lease, work, retried=(KeyError,), retry_after_s=0.0))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture
def key() -> str:
    """A lease of its own for each test."""
    return f"duty.{token(8)}"


async def test_one_of_two_works_and_the_other_takes_over(bus: Bus, other: Bus, key: str) -> None:
    """The second begins once the first has ended, under a higher epoch."""
    first, second = Work(), Work()
    async with AsyncExitStack() as stack:
        async with leased(bus.lease(key, "one", ttl=60.0), bus, first):
            await until(lambda: first.epochs)
            await stack.enter_async_context(leased(other.lease(key, "two", ttl=60.0), other, second))
            with pytest.raises(BusTimeout):
                await other.lease(key, "three").acquire(timeout=0.3)
            assert second.epochs == []
        await until(lambda: second.epochs)

    assert first.cancelled == 1
    assert second.epochs > first.epochs


async def test_a_lost_lease_ends_the_work_until_it_is_had_again(bus: Bus, other: Bus, key: str) -> None:
    """Somebody else holds it for a while: nothing is done meanwhile, and afterwards all of it anew."""
    work, kv = Work(), other.kv(LEASE_BUCKET)
    async with leased(bus.lease(key, "one"), bus, work):
        await until(lambda: work.epochs)
        await kv.put(key, OTHER_HOLDER)
        await until(lambda: work.cancelled)
        assert len(work.epochs) == 1
        await kv.delete(key)
        await until(lambda: len(work.epochs) == 2)

    assert work.epochs[1] > work.epochs[0]


async def test_after_a_reconnect_the_work_begins_anew_under_the_same_lease(tmp_path: Path, key: str) -> None:
    """The server was killed and came back: the streams may be other ones."""
    work = Work()
    async with embedded_nats(tmp_path / "nats") as server, connect(server.url, name="one") as bus:
        async with leased(bus.lease(key, "one", ttl=60.0), bus, work):
            await until(lambda: work.epochs)
            assert server.process is not None
            server.kill()
            await server.process.wait()
            await until(lambda: not bus.connected)
            assert work.cancelled == 0
            await server.start()
            await until(lambda: len(work.epochs) == 2)
        assert bus.statistics().reconnects == 1
    assert work.cancelled == 2


async def test_what_it_may_raise_and_a_return_begin_it_anew(bus: Bus, key: str) -> None:
    """Under the same lease, also where a group of tasks wraps the error."""
    work = Work(KeyError("away"), None, ExceptionGroup("tasks", [KeyError("away")]))
    async with leased(bus.lease(key, "one", ttl=60.0), bus, work):
        await until(lambda: len(work.epochs) == 4)

    assert len(set(work.epochs)) == 1


async def test_what_nobody_expects_ends_it_and_frees_the_lease(bus: Bus, other: Bus, key: str) -> None:
    """The caller gets the error; another process has the lease at once."""
    work = Work(ExceptionGroup("tasks", [KeyError("away"), ValueError("a bug")]))
    async with leased(bus.lease(key, "one", ttl=60.0), bus, work) as task:
        with pytest.raises(ExceptionGroup) as raised:
            await task

    unforeseen = raised.value.subgroup(ValueError)
    assert unforeseen is not None
    assert raised.value.subgroup(KeyError) is None
    await other.lease(key, "two").acquire(timeout=30.0)
