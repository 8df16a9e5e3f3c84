"""Requests whose key ends meanwhile: calls, streams and readers of logs; whoever has another key goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pilotlight_core.bus import DecodedMessage
from pilotlight_core.model.errors import Unauthenticated
from pilotlight_gateway.calls.call_port import ChunkEvent
from pilotlight_gateway.deploys.function_logs import LogQuery
from pilotlight_gateway.tenancy.api_keys import ApiKey
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.world import World, function, generator, packed
from tests.waiting import until

CALL = "/v1/functions/shop.hello/calls"
BODY = b'{"input": {"name": "x"}}'


def start(
    world: World, wire: Wire, key: ApiKey, method: str = "POST", target: str = CALL, **headers: str
) -> asyncio.Task[Wire]:
    headers["authorization"] = f"Bearer {key}"
    return asyncio.create_task(ask(world.app, wire, method, target, **headers))


def revoke(world: World, *keys: ApiKey) -> int:
    """End the requests of these keys."""
    ids = {key.id for key in keys}
    return world.services.requests.end_revoked(
        lambda principal: Unauthenticated("The API key was revoked.") if principal.key_id in ids else None
    )


@pytest.fixture
def held(world: World) -> World:
    """A world whose calls wait."""
    world.deploy(function("hello", generator()))
    world.calls.hold = asyncio.Event()
    return world


async def test_a_call_of_a_revoked_key_ends_with_the_reason(world: World) -> None:
    """401, its work is cancelled; another key's call goes on; nothing stays behind."""
    world.deploy(function())
    world.calls.hold = asyncio.Event()
    mine, other = world.add_key("acme", "invoke"), world.add_key("acme", "invoke")
    wires = [Wire(pieces=[BODY]), Wire(pieces=[BODY])]
    first, second = (start(world, wire, key) for wire, key in zip(wires, (mine, other), strict=True))
    await until(lambda: len(world.calls.seen) == 2)

    assert revoke(world, mine) == 1
    assert revoke(world, mine) == 0  # it is ending

    assert ((await first).status, wires[0].json["code"]) == (401, "unauthenticated")
    assert world.calls.cancelled == [world.calls.seen[0].call_id]
    world.calls.hold.set()
    assert (await second).status == 200
    assert len(world.services.requests) == 0


async def test_an_open_stream_of_a_revoked_key_ends_with_an_event(held: World) -> None:
    """What it has had stays; its last event is the error."""
    held.calls.events = [ChunkEvent(seq=1, data=data) for data in packed(1)]
    key, wire = held.add_key("acme", "invoke"), Wire(pieces=[BODY])
    stream = start(held, wire, key, accept="text/event-stream")
    await until(lambda: b"event: chunk" in wire.body)

    revoke(held, key)

    assert (await stream).status == 200
    assert b"event: error" in wire.body
    assert b"The API key was revoked." in wire.body
    assert held.calls.cancelled


async def test_a_reader_of_logs_does_not_outlive_its_key(world: World) -> None:
    """The connection ends."""
    world.deploy(function())
    key, wire = world.add_key("acme", "read"), Wire()

    class Silent:
        async def batches(self, query: LogQuery, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]:
            assert (query.app, start, follow) == ("shop", "all", True)
            await asyncio.Event().wait()
            yield world.logs.kept[0]

    world.services.logs = Silent()
    reader = start(world, wire, key, "GET", "/v1/apps/shop/logs?follow=true")
    await wire.started.wait()

    revoke(world, key)

    with pytest.raises(Unauthenticated):
        await reader


async def test_whoever_has_no_key_is_not_asked_for_one(world: World) -> None:
    """Open operations go on; so does a request whose key is still being checked."""
    async with world.client() as client:
        assert (await client.get("/healthz")).status_code == 200

    def ended(_: object) -> Unauthenticated:
        return Unauthenticated("no")

    assert world.services.requests.end_revoked(ended) == 0


async def test_a_cancellation_from_elsewhere_is_no_revocation(held: World) -> None:
    """It is passed on."""
    call = start(held, Wire(pieces=[BODY]), held.key, accept="text/event-stream")
    await until(lambda: held.calls.seen)

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.parametrize("path", [CALL, "/v1/apps"])
async def test_two_authorization_headers_are_one_too_many(world: World, path: str) -> None:
    """For every operation alike, also if they say the same: nobody may read the one, and another the other."""
    world.deploy(function())
    key = f"Bearer {world.key}"
    other = f"Bearer {world.add_key('rival', 'invoke', 'read')}"
    async with world.client() as client:
        client.headers.pop("authorization")
        for pair in ([key, other], [other, key], [key, key]):
            headers = [("Authorization", value) for value in pair]
            answer = await client.request("POST" if path == CALL else "GET", path, headers=headers, content=BODY)
            assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
            assert "2 Authorization headers" in answer.json()["detail"]
    assert not world.calls.seen
