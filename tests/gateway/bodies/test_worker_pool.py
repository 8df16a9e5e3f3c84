"""Worker processes, and whose turn it is."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.bodies.worker_frames import OutputWork
from pilotlight_gateway.bodies.worker_pool import WAITING, BodyWorkers, TenantTurns, WorkerDied


def future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


async def test_tenants_take_turns() -> None:
    """Whoever sends much has one worker, and waits behind whoever sends little."""
    turns, order = TenantTurns(2), [(tenant, future()) for tenant in ("greedy", "greedy", "greedy", "small", "other")]
    for tenant, wanted in order:
        turns.take(tenant, wanted)

    def running() -> list[int]:
        return [index for index, (_, wanted) in enumerate(order) if wanted.done()]

    assert running() == [0, 3]
    turns.give_back("small")
    assert running() == [0, 3, 4]
    turns.give_back("greedy")
    assert running() == [0, 1, 3, 4]


async def test_a_tenant_has_a_bound_of_waiting_bodies_and_who_left_is_passed_over() -> None:
    """Beyond it is `overloaded`; a cancelled turn costs nobody one."""
    turns, waiting = TenantTurns(1), [future() for _ in range(WAITING + 1)]
    for wanted in waiting:
        turns.take("greedy", wanted)
    with pytest.raises(Unavailable, match="wait to be read"):
        turns.take("greedy", future())

    waiting[1].cancel()
    turns.give_back("greedy")

    assert [index for index, wanted in enumerate(waiting) if wanted.done()] == [0, 1, 2]


async def test_a_worker_whose_block_fails_is_not_used_again(workers: BodyWorkers) -> None:
    """What it would still send belongs to nobody."""
    work = OutputWork(size=0, version="ver_1", method=None, as_json=True)
    with contextlib.suppress(WorkerDied):
        async with workers.worker("acme") as first:
            await first.send(work, b"")
            raise WorkerDied

    async with workers.worker("acme") as second:
        assert second is not first
        reply = await second.send(work, b"")
        assert await second.pieces(reply.size) == [b"null"]
