"""Providers' sides, each by the terms that its pool has now."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from msgspec.structs import replace

from pilotlight_autoscaler.pools.node_pool import NodePool
from pilotlight_autoscaler.pools.open_pools import OpenPools, no_pool
from pilotlight_core.model.records.pools import PoolRecord
from tests.builders.pools import EIGHT_L4, pool


class Opened:
    """One that only counts how often it is closed, and cannot even do that."""

    def __init__(self, record: PoolRecord) -> None:
        self.record = record
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1
        raise RuntimeError("it is broken")


def opened(record: PoolRecord) -> NodePool:
    return cast("NodePool", Opened(record))


async def test_a_pool_is_opened_once_and_anew_when_its_terms_change() -> None:
    """The one before is closed, and so are those of pools that are gone; one that fails to close harms nobody."""
    pools = OpenPools(opened)
    first, other = (cast("Opened", pools.pool(record)) for record in (pool(), pool("other")))
    assert pools.pool(pool()) is cast("NodePool", first)
    changed = pool("l4", EIGHT_L4)
    async with asyncio.TaskGroup() as tasks:
        pools.close_others({"l4": changed}, tasks)
    assert (first.closed, other.closed) == (1, 1)
    again = cast("Opened", pools.pool(changed))
    assert again.record == changed
    pools.forget("l4")
    assert pools.pool(changed) is not cast("NodePool", again)
    await pools.aclose()
    await pools.aclose()


async def test_a_pool_that_was_removed_and_made_again_is_another_one() -> None:
    """Its machines have other tags: those of the one before would be looked for, and none found."""
    pools = OpenPools(opened)
    first, again = cast("Opened", pools.pool(pool())), replace(pool(), id="again")
    async with asyncio.TaskGroup() as tasks:
        pools.close_others({"l4": again}, tasks)
    assert first.closed == 1
    assert cast("Opened", pools.pool(again)).record == again


def test_a_process_without_providers_says_so() -> None:
    """Such as one that advises."""
    with pytest.raises(ValueError, match="nobody here"):
        OpenPools(no_pool).pool(pool())
