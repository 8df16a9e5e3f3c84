"""An agent stores and reads by way of a gateway, on a real server that lets it do no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from pilotlight_core.bus import Bus, BusError, bus_users, connect
from pilotlight_core.bus.bus_errors import StoreRefused
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.logs import LogBatch
from pilotlight_core.model.messages.usage import UsageBatch
from pilotlight_gateway.fleet.node_storage import storage_answers
from pilotlight_runtime.node.asked_storage import AskedStorage
from pilotlight_supervisor.embedded_bus import EmbeddedNats, embedded_nats

pytestmark = pytest.mark.usefixtures("anyio_backend")
R = "local"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedNats]:
    async with embedded_nats(tmp_path / "bus", nodes=("n1",)) as server:
        yield server


@asynccontextmanager
async def gateway(server: EmbeddedNats, *, stores: bool = True) -> AsyncIterator[Bus]:
    """One that answers agents, or one of before, which does not."""
    user = bus_users.gateway()
    async with connect(server.url_of(user.name), name="gateway", inbox=user.inbox) as bus:
        if stores:
            async with storage_answers(bus, region=R).running():
                await bus.flush()
                yield bus
        else:
            yield bus


@asynccontextmanager
async def agent(server: EmbeddedNats) -> AsyncIterator[Bus]:
    user = bus_users.agent("n1")
    storage = partial(AskedStorage, subject=subjects.storage(R, "n1"))
    async with connect(
        server.url_of(user.name), name="agent n1", inbox=user.inbox, makes_streams=False, storage=storage
    ) as bus:
        yield bus


async def test_an_agent_stores_and_reads_by_a_gateway(server: EmbeddedNats) -> None:
    """Usage once, log lines, and a record of its own; what is everybody's is read."""
    async with gateway(server) as other, agent(server) as bus:
        await other.kv("PLATFORM").put("foundation.local", b"common")
        usage = subjects.usage(R, "n1", "acme")
        seq = await bus.store(usage, UsageBatch(events=()), id="1")
        assert await bus.store(usage, UsageBatch(events=()), id="1") == seq
        await bus.store(subjects.logs(R, "n1", "acme", "app", "fn"), LogBatch(lines=()), id="1")
        await bus.kv("LAYOUTS").put("n1", b"halves")

        entry = await bus.kv("LAYOUTS").get("n1")
        common = await bus.kv("PLATFORM").get("foundation.local")
        lines = [stored.subject async for stored in other.read_stream("LOGS", "logs.>")]

    assert entry is not None and common is not None  # noqa: PT018
    assert (entry.value, common.value) == (b"halves", b"common")
    assert lines == ["logs.local.n1.acme.app.fn"]


async def test_what_a_gateway_would_store_otherwise_is_refused(server: EmbeddedNats) -> None:
    """It knows of no condition: a delete would be a record that is empty."""
    async with gateway(server), agent(server) as bus:
        layouts = bus.kv("LAYOUTS")
        revision = await layouts.put("n1", b"one")
        with pytest.raises(StoreRefused, match="KV-Operation"):
            await layouts.delete("n1", revision)
        entry = await layouts.get("n1")
        assert entry is not None
        assert entry.value == b"one"


async def test_what_a_gateway_refuses_is_said(server: EmbeddedNats) -> None:
    """And not tried in another way."""
    async with gateway(server), agent(server) as bus:
        with pytest.raises(StoreRefused, match="not_its"):
            await bus.store(subjects.usage(R, "n2", "acme"), UsageBatch(events=()), id="1")
        with pytest.raises(StoreRefused, match="not_its"):
            await bus.kv("TENANCY").get("key.x")
        assert await bus.kv("LAYOUTS").get("n1") is None


async def test_a_gateway_that_comes_back_is_waited_for(server: EmbeddedNats) -> None:
    """It fails in its time, since the bus is not asked, or not for what is not granted; and it is stored later."""
    async with agent(server) as bus:
        async with gateway(server):
            await bus.kv("LAYOUTS").put("n1", b"one")
        with pytest.raises(BusError):
            await bus.jetstream.store("$KV.LAYOUTS.n1", b"two", timeout=0.3)
        async with gateway(server):
            await bus.kv("LAYOUTS").put("n1", b"two")
            entry = await bus.kv("LAYOUTS").get("n1")
    assert entry is not None and entry.value == b"two"  # noqa: PT018


async def test_where_it_may_not_ask_a_gateway_it_asks_the_bus(tmp_path: Path) -> None:
    """As a node of before may, which hears nothing of what it is refused."""
    async with embedded_nats(tmp_path / "before", nodes=("n1",), of_before=True) as server:
        user = bus_users.agent("n1")
        storage = partial(AskedStorage, subject="pl.local.node.n1.nowhere")
        async with (
            gateway(server),
            connect(
                server.url_of(user.name), name="agent n1", inbox=user.inbox, makes_streams=False, storage=storage
            ) as bus,
        ):
            await bus.kv("LAYOUTS").put("n1", b"direct")
            entry = await bus.kv("LAYOUTS").get("n1")
    assert entry is not None and entry.value == b"direct"  # noqa: PT018


async def test_beside_gateways_of_before_it_asks_the_bus(server: EmbeddedNats) -> None:
    """Which lets it, if its operator has said that there are some."""
    storage = partial(AskedStorage, subject=subjects.storage(R, "n1"))
    async with (
        gateway(server, stores=False),
        connect(server.url, name="agent", makes_streams=False, storage=storage) as bus,  # as one with such rights
    ):
        await bus.kv("LAYOUTS").put("n1", b"direct")
        entry = await bus.kv("LAYOUTS").get("n1")
    assert entry is not None and entry.value == b"direct"  # noqa: PT018
