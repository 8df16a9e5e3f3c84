"""Two gateways over one real bus: across processes, across restarts, and while the bus is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.bus import Bus, BusError, KeyConflict, connect
from pilotlight_core.bus.streams import StreamLimits, stream_configs
from pilotlight_core.model.errors import PilotlightError, Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import IDEMPOTENCY_BUCKET
from pilotlight_gateway.idempotency.bus_key_records import ECHOES_S, BusKeyRecords
from pilotlight_gateway.idempotency.key_record import (
    CallOwner,
    FirstCall,
    FirstCallState,
    StoredAnswer,
    begun,
    ended,
    place_of,
    voided,
)
from pilotlight_gateway.idempotency.keyed_calls import Idempotency
from pilotlight_supervisor.embedded_bus import embedded_nats
from tests.core.bus.test_bus_restarts import crash, restart
from tests.gateway.idempotency.asking import Work, ask, give
from tests.waiting import until, until_found

TTL = 3600.0


@dataclass(kw_only=True)
class Process:
    """What one gateway process has of idempotency."""

    bus: Bus
    owner: CallOwner
    keys: Idempotency


@asynccontextmanager
async def process(url: str, name: str, ttl: float = TTL) -> AsyncIterator[Process]:
    """A gateway's connection, lease and keys. The lease is held as `Shards` holds it."""
    owner = CallOwner(name=f"{name}-{token()}", instance=f"{name}-{token(8)}")
    async with connect(url, name=name) as bus:
        lease = bus.lease(f"gateway.{owner.name}", owner.name, data=owner.instance.encode())
        await lease.acquire()
        yield Process(bus=bus, owner=owner, keys=Idempotency(BusKeyRecords(bus), owner=owner, ttl=ttl))
        await lease.release()


@pytest.fixture
async def one(server_url: str) -> AsyncIterator[Process]:
    async with process(server_url, "one") as made:
        yield made


@pytest.fixture
async def two(server_url: str) -> AsyncIterator[Process]:
    async with process(server_url, "two") as made:
        yield made


def first_call(owner: CallOwner, timeout_s: float = 30.0) -> FirstCall:
    return begun(b"f", f"call_{token()}", owner, at=1e10, timeout_s=timeout_s)


async def test_an_answer_is_repeated_by_another_gateway(one: Process, two: Process) -> None:
    """What the first wrote, the second reads."""
    key, work = token(), Work()

    first = await give(one.keys, ask(key), work)
    second = await give(two.keys, ask(key, call="call_2"), work)

    assert (second.answer, second.call_id, second.replayed, work.begun) == (first.answer, "call_1", True, 1)


async def test_of_many_at_once_one_runs(one: Process, two: Process) -> None:
    """All others, at both gateways, wait for its answer."""
    key, work = token(), Work(hold=asyncio.Event())
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(give(p.keys, ask(key, wait_s=30.0), work)) for p in (one, two) * 5]
        await work.running.wait()
        assert work.hold is not None
        work.hold.set()

    assert work.begun == 1
    assert sorted(task.result().replayed for task in asked) == [False] + [True] * 9
    assert len({task.result().answer.body for task in asked}) == 1


async def test_a_bell_rings_again_until_what_was_written_can_be_read(one: Process, two: Process) -> None:
    """A message is heard before it is stored; after its echoes there is silence, until the connection was away."""
    place, records = place_of("acme", token()), BusKeyRecords(one.bus)
    async with BusKeyRecords(two.bus).watch(place) as bell:
        assert not await bell.wait(0.01)
        await two.bus.flush()
        await records.claim(place, first_call(one.owner), 0, ttl=TTL)
        assert await bell.wait(30.0)
        echoes = [await bell.wait(30.0) for _ in ECHOES_S[1:-1]]
        bell.ring()
        assert await bell.wait(30.0)

        assert all(echoes)
        assert not await bell.wait(0.001)
        await bell.reconnected()
        assert await bell.wait(30.0)


async def test_a_gateway_that_is_gone_is_missed(server_url: str, two: Process) -> None:
    """Its lease is released, or has expired: its call is lost, unless the function may run twice."""
    keys, work = (token(), token()), Work(hold=asyncio.Event())
    async with process(server_url, "dying") as dying:
        lost = [asyncio.create_task(give(dying.keys, ask(key), work)) for key in keys]
        await until(lambda: work.begun == 2)
        with pytest.raises(PilotlightError, match="still runs"):
            await give(two.keys, ask(keys[0]), work)
        for task in lost:
            task.cancel()
        await asyncio.wait(lost)

    with pytest.raises(PilotlightError) as refused:
        await give(two.keys, ask(keys[0]), work)
    again = await give(two.keys, ask(keys[1], idempotent=True), Work())

    assert (refused.value.wire_code, again.replayed) == ("call_lost", False)


async def test_a_gateway_that_started_anew_is_another_one(server_url: str, one: Process) -> None:
    """Its former incarnation's calls are lost, though its name holds a lease."""
    records = BusKeyRecords(one.bus)

    assert await records.is_alive(one.owner)
    assert not await records.is_alive(msgspec.structs.replace(one.owner, instance="former"))
    assert not await records.is_alive(CallOwner(name="nobody", instance="x"))


async def test_a_key_is_as_new_when_it_has_expired(one: Process) -> None:
    """The server forgets it by itself, and leaves no mark in its way."""
    place, records = place_of("acme", token()), BusKeyRecords(one.bus)
    await records.claim(place, first_call(one.owner), 0, ttl=1.0)
    with pytest.raises(KeyConflict):
        await records.claim(place, first_call(one.owner), 0, ttl=1.0)

    async def gone() -> bool:
        return await records.read(place) is None

    await until_found(gone)
    await records.claim(place, first_call(one.owner), 0, ttl=60.0)


async def test_a_key_that_an_operator_deleted_may_be_used_again(one: Process) -> None:
    """The delete marker is no record."""
    place, records = place_of("acme", token()), BusKeyRecords(one.bus)
    await records.claim(place, first_call(one.owner), 0, ttl=TTL)
    await one.bus.kv(IDEMPOTENCY_BUCKET).delete(place)

    found = await records.read(place)

    assert found is not None
    assert found.first is None
    await records.claim(place, first_call(one.owner), found.revision, ttl=TTL)


async def test_what_somebody_else_took_over_is_not_overwritten(one: Process) -> None:
    """The late answer of a call whose key was claimed anew is nobody's any more."""
    place, records = place_of("acme", token()), BusKeyRecords(one.bus)
    first, later = first_call(one.owner), first_call(one.owner)
    revision = await records.claim(place, first, 0, ttl=TTL)
    await records.claim(place, later, revision, ttl=TTL)

    await records.settle(place, voided(first), revision, TTL)

    found = await records.read(place)
    assert found is not None
    assert found.first == later


async def test_keys_survive_a_restart_of_the_server_and_of_the_gateway(tmp_path: Path) -> None:
    """Kill both: the answer is still repeated, and expires no earlier."""
    work = Work()
    async with embedded_nats(tmp_path / "nats") as server, process(server.url, "one") as one:
        await give(one.keys, ask(), work)
        await crash(server, one.bus)
        await restart(server, one.bus)
        assert (await give(one.keys, ask(), work)).replayed
    async with embedded_nats(tmp_path / "nats") as server, process(server.url, "one") as one:
        assert (await give(one.keys, ask(), work)).replayed
    assert work.begun == 1


async def test_an_answer_is_remembered_when_the_bus_comes_back(tmp_path: Path) -> None:
    """The first caller is answered meanwhile; nothing new runs without the bus, and its key stays free."""
    async with embedded_nats(tmp_path / "nats") as server, process(server.url, "one") as one:
        work = Work(hold=asyncio.Event())
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(give(one.keys, ask("early"), work))
            await work.running.wait()
            await crash(server, one.bus)
            assert work.hold is not None
            work.hold.set()
        assert first.result().answer.body == b"answer"
        with pytest.raises(BusError):
            await give(one.keys, ask("late"), work)
        await restart(server, one.bus)

        assert (await give(one.keys, ask("early", wait_s=20.0), work)).replayed
        assert not (await give(one.keys, ask("late", wait_s=20.0), work)).replayed
    assert work.begun == 2


async def test_a_claim_that_was_not_confirmed_is_withdrawn(one: Process) -> None:
    """It may stand although its confirmation was lost: nobody acts on it, so the key is void."""
    place, records, first = place_of("acme", token()), BusKeyRecords(one.bus), first_call(one.owner)
    await records.claim(place, first, 0, ttl=TTL)

    await records._withdraw(place, first)

    found = await records.read(place)
    assert found is None or (found.first is not None and found.first.stage is FirstCallState.VOID)


async def test_a_full_bucket_refuses_new_keys_and_keeps_the_old(tmp_path: Path) -> None:
    """No key is forgotten before its time: that would let a call run twice."""
    async with embedded_nats(tmp_path / "nats") as server, process(server.url, "one") as one:
        small = next(
            config for config in stream_configs(StreamLimits(idempotency_keys=2)) if "IDEMPOTENCY" in config["name"]
        )
        await one.bus.jetstream.ensure_stream(small)
        records, answer = BusKeyRecords(one.bus), StoredAnswer(status=200, headers=(), body=b"x")
        first = first_call(one.owner)
        revision = await records.claim("a", first, 0, ttl=TTL)
        await records.claim("b", first, 0, ttl=TTL)

        with pytest.raises(Unavailable) as refused:
            await records.claim("c", first, 0, ttl=TTL)
        await records.settle("a", ended(first, answer), revision, TTL)

        found = await records.read("a")
        assert refused.value.wire_code == "overloaded"
        assert found is not None
        assert found.first == ended(first, answer)
