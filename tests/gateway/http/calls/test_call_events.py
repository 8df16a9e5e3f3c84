"""Reading a stream on behind one of its events."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.model.api.call_api import CallStatus
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.world import World
from tests.waiting import until

CALL = "call_local_1_00000000000000000001"
PATH = f"/v1/calls/{CALL}/events"


@pytest.fixture
async def told(world: World) -> World:
    """One in which acme has a stream with two events."""
    stream = world.services.streams.keeper.open(CALL, "acme", 30.0)
    await stream.put(1, b"id: 1\nevent: chunk\ndata: 1\n\n")
    await stream.put(2, b"id: 2\nevent: chunk\ndata: 2\n\n")
    return world


async def test_it_is_found_by_the_clients_own_id(told: World) -> None:
    """As the call is."""
    told.calls.statuses["acme", "cid_12345678"] = CallStatus(id=CALL, state="running", version="v", age_ms=1.0)
    stream = told.services.streams.keeper.find("acme", CALL)
    assert stream is not None
    stream.end(3, b"id: 3\nevent: result\ndata: 3\n\n")
    async with told.client() as client:
        answer = await client.get("/v1/calls/cid_12345678/events", headers={"Last-Event-ID": "2"})

    assert answer.text == "id: 3\nevent: result\ndata: 3\n\n"
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"


async def test_a_reader_that_goes_may_come_back(told: World) -> None:
    """The stream is left, not ended."""
    wire = Wire()
    asking = asyncio.create_task(ask(told.app, wire, "GET", PATH, authorization=f"Bearer {told.key}"))
    await until(lambda: b"data: 2" in wire.body)
    wire.gone.set()
    await asking
    stream = told.services.streams.keeper.find("acme", CALL)

    assert stream is not None
    assert not stream.has_ended
    assert stream._left_at is not None


@pytest.mark.parametrize(
    ("tenant", "path", "after", "code"),
    [
        ("rival", PATH, "1", "unknown_call"),
        ("acme", "/v1/calls/nonsense/events", "1", "unknown_call"),
        ("acme", "/v1/calls/call_local_1_00000000000000000002/events", "1", "unknown_call"),
        ("acme", "/v1/calls/cid_87654321/events", "1", "unknown_call"),
        ("acme", PATH, "3", "events_gone"),
        ("acme", PATH, "one", "bad_input"),
        ("acme", PATH, "9" * 16, "bad_input"),
    ],
)
async def test_what_cannot_be_read_is_refused(told: World, tenant: str, path: str, after: str, code: str) -> None:
    """Another tenant's stream is as one that never was."""
    async with told.client(told.add_key(tenant, "invoke")) as client:
        answer = await client.get(path, headers={"Last-Event-ID": after})

    assert answer.json()["code"] == code


async def test_it_takes_a_key_that_may_call(told: World) -> None:
    """A key that reads has no business with answers."""
    async with told.client(told.add_key("acme", "read")) as client:
        assert (await client.get(PATH)).status_code == 403
