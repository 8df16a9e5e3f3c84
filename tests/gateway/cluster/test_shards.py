"""One gateway among all: it takes shards, begins them with what it was handed, and leaves them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.scheduling import CallReply
from pilotlight_core.model.subjects import SHARDS
from pilotlight_gateway.cluster.identity_guard import NameTaken
from pilotlight_gateway.cluster.shard_plan import heir_of
from pilotlight_gateway.cluster.shard_table import ShardTable
from pilotlight_gateway.cluster.shards import Shards, gateway_lease
from tests.waiting import until

CALM_S = 0.5
"""After which shards move here: longer than a gateway that leaves takes, or it would be handed back what it gives."""


class Member:
    """A gateway that notes what its shards are handed, and whom it sees go."""

    def __init__(self, bus: Bus, name: str) -> None:
        instance = f"{name}-{token(8)}"
        lease = gateway_lease(bus, region="local", name=name, instance=instance)
        self.table = ShardTable(instance, lease)
        self.begun: dict[int, tuple[int, bytes]] = {}
        self.gone: list[str] = []
        self.moved: set[int] = set()
        self.shards = Shards(bus, self.table, lease, name=name, callers=self, participants={"notes": self})
        self.shards.move_after_s = CALM_S

    def begin(self, shard: int, epoch: int, state: bytes) -> None:
        self.begun[shard] = epoch, state

    def end(self, shard: int) -> bytes:
        del self.begun[shard]
        return f"from {self.table.instance}".encode()

    def homes_changed(self, shards: frozenset[int]) -> None:
        self.moved |= shards

    def gateway_gone(self, instance: str) -> None:
        self.gone.append(instance)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take part, and wait until every shard has a home."""
        async with self.shards.running():
            await until(lambda: self.table.is_settled)
            yield


@pytest.fixture
def one(bus: Bus) -> Member:
    return Member(bus, f"one{token(6)}")


@pytest.fixture
def two(other: Bus) -> Member:
    return Member(other, f"two{token(6)}")


async def test_who_is_alone_is_the_home_of_all(one: Member) -> None:
    """Each shard begins once, under the epoch that its record has; nobody is the home when it has left."""
    async with one.running():
        await until(lambda: len(one.begun) == SHARDS)
        at = time.monotonic()
        assert {one.table.mine(shard, at) for shard in range(SHARDS)} == {epoch for epoch, _ in one.begun.values()}
        owners = [one.table.owner(shard) for shard in range(SHARDS)]
        assert {owner.gateway for owner in owners if owner is not None} == {one.table.instance}
        assert one.moved == set(range(SHARDS))
    assert one.begun == {}
    assert one.table.acting == {}


async def test_who_leaves_hands_over_what_it_has(one: Member, two: Member) -> None:
    """Every shard is begun by the heir with what the former home said, under a higher epoch."""
    async with two.running():
        async with one.running():
            await until(lambda: two.table.others() == [one.table.instance])
            heirs = {shard: heir_of(shard, two.table.members) for shard in range(SHARDS)}
            own = {shard for shard, heir in heirs.items() if heir and heir.instance == one.table.instance}
            await until(lambda: set(one.begun) == own and set(two.begun) == set(range(SHARDS)) - own)
            handed = {shard: epoch for shard, (epoch, _) in one.begun.items()}
        await until(lambda: len(two.begun) == SHARDS)
        said = f"from {one.table.instance}".encode()
        assert {two.begun[shard][1] for shard in handed} == {said}
        assert all(two.begun[shard][0] > epoch for shard, epoch in handed.items())
        await until(lambda: two.gone == [one.table.instance])


async def test_a_name_is_given_to_one_process(one: Member, other: Bus) -> None:
    """A second one does not begin while the first answers."""
    async with one.running():
        listens = subjects.ask("local", one.table.instance)
        await other.subscribe(listens, lambda _, __, reply: other.publish_nowait(reply, CallReply()))
        await other.flush()
        with pytest.raises(NameTaken):
            async with Member(other, one.shards._name).running():
                pass
        assert not one.shards.superseded.done()
