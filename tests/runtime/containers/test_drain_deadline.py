"""The deadline of a drain only comes nearer."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_runtime.containers.drain_deadline import DrainDeadline


async def test_it_comes_nearer_while_it_is_waited_for_and_never_goes_back(anyio_backend: str) -> None:
    """The longer one is not heeded, whichever comes first."""
    deadline = DrainDeadline(asyncio.get_running_loop().time)
    deadline.limit(1_000.0)
    waiting = asyncio.create_task(deadline.wait_idle())
    await asyncio.sleep(0)

    deadline.limit(0.01)
    deadline.limit(2_000.0)

    with pytest.raises(TimeoutError):
        await waiting


async def test_who_holds_no_call_waits_for_nothing(anyio_backend: str) -> None:
    """Not even with a deadline that has passed meanwhile, nor for one that comes after."""
    deadline = DrainDeadline(asyncio.get_running_loop().time)
    deadline.limit(1_000.0)
    waiting = asyncio.create_task(deadline.wait_idle())
    await asyncio.sleep(0)

    deadline.on_idle()
    deadline.limit(0.0)

    await waiting


async def test_what_a_notice_has_limited_is_as_before_once_it_is_withdrawn(anyio_backend: str) -> None:
    """What others have limited meanwhile counts."""
    deadline = DrainDeadline(asyncio.get_running_loop().time)
    waiting = asyncio.create_task(deadline.wait_idle())
    await asyncio.sleep(0)
    deadline.limit(0.01, by_notice=True)
    deadline.withdraw_notice()
    with pytest.raises(TimeoutError):  # of this wait, which is longer than the notice's time was
        async with asyncio.timeout(0.02):
            await asyncio.shield(waiting)
    assert not waiting.done()

    deadline.limit(0.01)
    deadline.withdraw_notice()

    with pytest.raises(TimeoutError):
        await waiting
