"""A node that was taken over has the bus's server do nothing for it, whose answers go wherever who asks says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.bus import Bus, bus_users, connect
from pilotlight_core.model import subjects
from pilotlight_supervisor.embedded_bus import embedded_nats

R = "local"
LAYOUT = "$KV.LAYOUTS.n1"
READS = msgspec.json.encode({"last_by_subj": LAYOUT})
NOTHING = msgspec.json.encode({"last_by_subj": "$KV.LAYOUTS.none"})


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Place:
    """A platform's bus, as who may do all sees it, and with the rights of a node's agent."""

    operator: Bus
    agent: Bus
    heard: list[str] = field(default_factory=list)

    async def stored(self, key: str) -> bytes | None:
        entry = await self.operator.kv("TENANCY").get(key)
        return None if entry is None else entry.value

    async def settle(self) -> None:
        """Until the server has carried out what it was asked."""
        await self.agent.flush()
        for _ in range(3):
            await self.operator.jetstream.last_sequence("USAGE")


@pytest.fixture(params=[False, True], ids=["an agent", "an agent of before"])
async def place(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[tuple[Place, bool]]:
    """The second has the rights of an upgrade, by which it succeeds: else nothing would be tried here."""
    async with embedded_nats(tmp_path / "bus", nodes=("n1", "n2"), of_before=request.param) as server:
        user = bus_users.agent("n1")
        async with (
            connect(server.url, name="operator") as operator,
            connect(server.url_of(user.name), name="agent n1", inbox=user.inbox, makes_streams=False) as agent,
        ):
            await operator.kv("TENANCY").put("tenant.acme", b"a tenant")
            await operator.kv("LAYOUTS").put("n1", b"what it likes")
            yield Place(operator, agent), request.param


async def test_no_answer_becomes_a_record(place: tuple[Place, bool]) -> None:
    """Neither its own record, read into another's place, nor the confirmation of a log line."""
    at, succeeds = place
    at.agent.publish_data("$JS.API.DIRECT.GET.KV_LAYOUTS", READS, reply="$KV.TENANCY.key.evil")
    at.agent.publish_data(subjects.logs(R, "n1", "a", "b", "c"), b"x", reply="$KV.TENANCY.tenant.acme")
    await at.settle()

    assert await at.stored("key.evil") == (b"what it likes" if succeeds else None)
    assert (await at.stored("tenant.acme") == b"a tenant") is not succeeds


async def test_no_answer_is_a_request_to_the_server(place: tuple[Place, bool]) -> None:
    """Nor does a stream go by it."""
    at, succeeds = place
    at.agent.publish_data("$JS.API.DIRECT.GET.KV_LAYOUTS", NOTHING, reply="$JS.API.STREAM.DELETE.AUDIT")
    await at.settle()
    names = (await at.operator.jetstream.api("STREAM.NAMES", {})).streams or []

    assert ("AUDIT" in names) is not succeeds


async def test_no_answer_speaks_as_another(place: tuple[Place, bool]) -> None:
    """To another node's agent as its controller, for one."""
    at, succeeds = place
    came = asyncio.Event()
    heard: list[object] = []

    def hear(_subject: str, message: object, _reply: str) -> None:
        heard.append(message)
        came.set()

    await at.operator.subscribe(subjects.command(R, "n2"), hear, read=bytes)
    await at.operator.flush()
    at.agent.publish_data("$JS.API.DIRECT.GET.KV_LAYOUTS", READS, reply=subjects.command(R, "n2"))
    await at.settle()
    if succeeds:
        async with asyncio.timeout(10):
            await came.wait()

    assert heard == [b"what it likes"] * succeeds
