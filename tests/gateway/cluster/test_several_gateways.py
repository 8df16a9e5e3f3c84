"""Several gateways on one bus: a function's home is one of them, whichever the caller came to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
import pytest

from pilotlight_core.bus import Bus, KvEntry, connect
from pilotlight_core.bus.lease import LeaseRecord
from pilotlight_core.model import values
from pilotlight_core.model.errors import TooMuch, UnknownCall
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.scheduling import Enqueue, HomeState, ToHome
from pilotlight_core.model.subjects import LEASE_BUCKET, SHARD_BUCKET, SHARDS, shard_of
from pilotlight_gateway.cluster.identity_guard import NameTaken
from pilotlight_gateway.cluster.shard_plan import GatewayMember, ShardRecord, heir_of
from pilotlight_gateway.cluster.shards import ShardParticipant
from pilotlight_gateway.home.home import QueueLimits
from tests.gateway.call_gateway import CallGateway
from tests.gateway.calls.test_call_service import prepared
from tests.gateway.scripted_agent import ScriptedAgent
from tests.waiting import until

FUNCTION = "acme:a.f"
CALM_S = 0.75
"""After which shards move here; nobody comes and goes for longer."""


class Fleet:
    """Gateways that come and go, each on a connection of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._suffix = token(6)
        self.gateways: dict[str, CallGateway] = {}
        self._stacks: dict[str, AsyncExitStack] = {}
        self._buses: dict[str, Bus] = {}

    async def start(
        self,
        name: str,
        limits: QueueLimits | None = None,
        participants: Mapping[str, ShardParticipant] | None = None,
    ) -> CallGateway:
        """A gateway joins."""
        async with AsyncExitStack() as stack:
            bus = await stack.enter_async_context(connect(self._url, name=name))
            gateway = CallGateway(bus, name=f"{name}{self._suffix}", limits=limits, participants=participants)
            gateway.shards.move_after_s = CALM_S
            await stack.enter_async_context(gateway.running())
            self.gateways[name], self._buses[name], self._stacks[name] = gateway, bus, stack.pop_all()
        return gateway

    async def stop(self, name: str) -> None:
        """It ends in order, and hands over."""
        del self.gateways[name], self._buses[name]
        await self._stacks.pop(name).aclose()

    async def stop_all(self) -> None:
        for name in list(self.gateways):
            await self.stop(name)

    def homes(self) -> dict[str, int]:
        """How many shards each is the home of."""
        at = time.monotonic()
        return {
            name: sum(one.table.mine(shard, at) is not None for shard in range(SHARDS))
            for name, one in self.gateways.items()
        }

    def home_of(self, function: str) -> str | None:
        """The gateway that is the function's home, if all agree."""
        at = time.monotonic()
        found = [n for n, one in self.gateways.items() if one.table.mine(shard_of(function), at) is not None]
        return found[0] if len(found) == 1 else None

    async def settled(self) -> None:
        """Every shard is where it belongs, so that none moves any more."""
        await until(lambda: all(self._at_heir(shard) for shard in range(SHARDS)), within=60.0)

    def _at_heir(self, shard: int) -> bool:
        heir = heir_of(shard, [GatewayMember(one.shards._name, name, 0) for name, one in self.gateways.items()])
        at = time.monotonic()
        acting = [name for name, one in self.gateways.items() if one.table.mine(shard, at) is not None]
        return heir is not None and acting == [heir.instance]

    async def pair(self) -> tuple[CallGateway, CallGateway]:
        """Two gateways: the home of `FUNCTION`, and the other."""
        for name in ("one", "two"):
            await self.start(name)
        await self.settled()
        home = self.home_of(FUNCTION)
        assert home is not None
        return self.gateways[home], self.gateways["two" if home == "one" else "one"]


@pytest.fixture
async def fleet(server_url: str) -> AsyncIterator[Fleet]:
    fleet = Fleet(server_url)
    yield fleet
    await fleet.stop_all()


@asynccontextmanager
async def agent_of(url: str) -> AsyncIterator[ScriptedAgent]:
    async with connect(url, name="node") as bus:
        agent = ScriptedAgent(bus, version=f"ver_{token(12)}")
        await agent.listen()
        yield agent


async def test_shards_are_divided_and_each_has_one_home(fleet: Fleet) -> None:
    """A gateway alone has all; a second one gets about half of them, by hand-over."""
    await fleet.start("one")
    await fleet.settled()

    await fleet.start("two")
    await fleet.settled()

    assert all(SHARDS / 4 < mine < SHARDS * 3 / 4 for mine in fleet.homes().values())


async def test_a_call_at_another_gateway_than_its_home_runs(fleet: Fleet, server_url: str) -> None:
    """Its home grants, its origin sends: the answer comes back to where the caller is."""
    home, other = await fleet.pair()
    async with agent_of(server_url) as agent:
        agent.credit()
        for origin in (home, other):
            result = await origin.calls.run(prepared(origin.calls, agent))
            assert values.decode(result.output) == {"x": 1}


async def test_the_queue_of_a_home_is_one_for_all_gateways(fleet: Fleet, server_url: str) -> None:
    """A queue that is full for one is full for the other, and says when to come back."""
    for name in ("one", "two"):
        await fleet.start(name, QueueLimits(per_version=1))
    await fleet.settled()
    async with agent_of(server_url) as agent:
        one, two = (gateway.calls for gateway in fleet.gateways.values())
        waiting = asyncio.create_task(one.run(prepared(one, agent)))
        await until(lambda: sum(calls.statistics().queued for calls in (one, two)) == 1)

        with pytest.raises(TooMuch) as refused:
            await two.run(prepared(two, agent))

        assert refused.value.retry_after
        agent.credit()
        await waiting


async def test_a_grant_to_a_call_that_is_gone_gives_its_slot_back_wherever_the_home_is(
    fleet: Fleet, server_url: str
) -> None:
    """That it had left was told to a former home, or to nobody: the one slot serves those who wait behind it."""
    home, other = await fleet.pair()
    shard = shard_of(FUNCTION)
    async with agent_of(server_url) as agent:
        left = asyncio.create_task(other.calls.run(prepared(other.calls, agent)))
        await until(lambda: home.calls.statistics().queued == 1)
        homes = home.drivers.homes
        queue = homes.get(shard, time.monotonic())
        assert queue is not None
        (entry,) = [entry for known in queue._queues.values() for entry in known.calls]
        for _ in range(3):
            gone = msgspec.structs.replace(entry.call, call_id=other.calls.new_id())
            homes.on_mail("", ToHome(shard=shard, items=(Enqueue(gone),)), "")
        waiting = asyncio.create_task(other.calls.run(prepared(other.calls, agent)))
        await until(lambda: home.calls.statistics().queued == 5)

        agent.credit()
        await left
        await waiting


async def test_a_gateway_that_ends_hands_over_its_queues(fleet: Fleet, server_url: str) -> None:
    """Calls of other gateways that waited there are granted by the next home, none is lost or refused."""
    home, other = await fleet.pair()
    async with agent_of(server_url) as agent:
        waiting = [asyncio.create_task(other.calls.run(prepared(other.calls, agent))) for _ in range(5)]
        await until(lambda: home.calls.statistics().queued == 5)

        await fleet.stop(next(name for name, one in fleet.gateways.items() if one is home))
        await until(lambda: other.calls.statistics().queued == 5)

        agent.credit()
        for call in waiting:
            await call


async def test_a_gateway_that_ends_in_the_middle_of_a_move_hands_over_what_it_had_taken_out(
    fleet: Fleet, server_url: str
) -> None:
    """The queue stands in the record of the next home, as if nothing had come between; after that nothing is kept."""
    home, other = await fleet.pair()
    shard = shard_of(FUNCTION)
    async with agent_of(server_url) as agent, connect(server_url, name="reader") as bus:
        waiting = [asyncio.create_task(other.calls.run(prepared(other.calls, agent))) for _ in range(5)]
        await until(lambda: home.calls.statistics().queued == 5)

        shards = home.shards
        shards._kept[shard] = (shards._owned[shard].revision, shards._stop_acting(shard))
        await fleet.stop(next(name for name, one in fleet.gateways.items() if one is home))

        entry = await bus.kv(SHARD_BUCKET).get(str(shard))
        assert entry is not None
        record = msgspec.msgpack.decode(entry.value, type=ShardRecord)
        assert record.home.instance == other.table.instance
        assert len(msgspec.msgpack.decode(record.state["calls"], type=HomeState).calls) == 5
        assert shards._kept == {}
        await until(lambda: other.calls.statistics().queued == 5)  # a credit of before it reads that record is lost
        agent.credit()
        for call in waiting:
            await call


async def test_a_call_is_found_and_cancelled_through_any_gateway(fleet: Fleet, server_url: str) -> None:
    """By its id, and by its client's id; another tenant finds nothing; an owner that is gone took the call with it."""
    home, other = await fleet.pair()
    async with agent_of(server_url) as agent:
        call = prepared(home.calls, agent, client_id="cid_12345678")
        running = asyncio.create_task(home.calls.run(call))
        await until(lambda: home.calls.statistics().queued == 1)

        assert (await other.calls.status("acme", call.call_id)).state == "queued"
        assert (await other.calls.status("acme", "cid_12345678")).id == call.call_id
        with pytest.raises(UnknownCall):
            await other.calls.status("mallory", call.call_id)
        with pytest.raises(UnknownCall):
            await other.calls.status("acme", "cid_neverheard")
        assert await other.calls.cancel("acme", call.call_id)
        await asyncio.wait([running])
        assert (await other.calls.status("acme", call.call_id)).state == "cancelled"

        await fleet.stop(next(name for name, one in fleet.gateways.items() if one is home))
        await until(lambda: not other.table.others())
        with pytest.raises(UnknownCall) as lost:
            await other.calls.status("acme", call.call_id)
        assert lost.value.wire_code == "call_lost"
        running.exception()


async def test_a_second_gateway_of_one_name_does_not_begin(fleet: Fleet, server_url: str) -> None:
    """It says whose name it has and what to do; the first keeps its lease and its shards."""
    one = await fleet.start("one")
    await fleet.settled()
    epoch = one.table.epoch

    rival = Fleet(server_url)
    rival._suffix = fleet._suffix
    with pytest.raises(NameTaken, match=rf"runs \(process {one.shards._instance}\).*--name"):
        await rival.start("one")

    assert (fleet.homes(), one.table.epoch) == ({"one": SHARDS}, epoch)
    assert not one.shards.superseded.done()


async def test_a_gateway_whose_name_was_given_away_ends_instead_of_fighting(fleet: Fleet, server_url: str) -> None:
    """It was silent for so long that another process was started under its name: that one keeps the lease."""
    one, two = await fleet.start("one"), await fleet.start("two")
    name = one.shards._name
    async with connect(server_url, name="thief") as bus:
        heir = bus.lease(f"gateway.{name}", name, data=two.shards._instance.encode())
        await heir.acquire()

        error = await asyncio.wait_for(asyncio.shield(one.shards.superseded), 20)

        assert "--name" in error.detail
        assert heir.valid(time.monotonic())
        assert fleet.homes()["one"] == 0
        await heir.release()


async def test_a_former_process_of_our_name_lives_no_more(fleet: Fleet) -> None:
    """What the mirror has of it is old: it is the home of nothing, although the records name it."""
    one = await fleet.start("one")
    await fleet.settled()
    shards = one.shards
    key = f"gateway.{shards._name}"
    former = LeaseRecord(holder=shards._name, epoch=1, data=b"former")
    shards._leases._entries[key] = KvEntry(msgspec.msgpack.encode(former), 1)

    assert [member.instance for member in shards._living()] == [shards._instance]


class Clumsy:
    """A participant that raises whenever it is handed something, or asked for it."""

    def __init__(self) -> None:
        self.begun = 0

    def begin(self, shard: int, epoch: int, state: bytes) -> None:
        if state:
            raise ValueError("what is this")
        self.begun += 1

    def end(self, shard: int) -> bytes:
        raise OverflowError("it does not fit")


async def test_what_a_participant_cannot_use_or_say_ends_no_gateway(fleet: Fleet, server_url: str) -> None:
    """Nor does a record that nobody can read: the shards move all the same, and calls run."""
    async with connect(server_url, name="somebody") as bus:
        await bus.kv(LEASE_BUCKET).put("gateway.junk", b"\xff")
        await bus.kv(SHARD_BUCKET).put(str(SHARDS), b"\x01")
        lost = ShardRecord(home=GatewayMember("junk", "junk-1", 1))
        await bus.kv(SHARD_BUCKET).put("0", msgspec.msgpack.encode(lost))
        await bus.kv(SHARD_BUCKET).put(str(shard_of(FUNCTION)), b"\xff")
    clumsy = Clumsy()
    one = await fleet.start("one", participants={"clumsy": clumsy})
    await fleet.settled()
    await fleet.start("two", participants={"clumsy": Clumsy()})
    await fleet.settled()
    await fleet.stop("two")
    await fleet.settled()

    assert clumsy.begun
    async with agent_of(server_url) as agent:
        agent.credit()
        assert (await one.calls.run(prepared(one.calls, agent))).attempts == 1
    async with connect(server_url, name="somebody") as bus:
        await bus.kv(LEASE_BUCKET).delete("gateway.junk")
