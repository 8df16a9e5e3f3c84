"""Every request is named and answered."""

from __future__ import annotations

import pytest

from pilotlight_gateway.http.protocol.error_dialects import SHAPES
from pilotlight_gateway.http.routes import OPERATIONS
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.world import World

GUARDED = [(op.method, op.path) for op in OPERATIONS if op.scopes]

PLACES = {
    "ref": "shop.hello", "sha256": "0" * 64, "app": "shop", "id": "x", "tenant": "acme", "function": "shop.hello",
    "tier": "free", "grantee": "friend", "delivery": "msg_x", "batch": "batch_x",
    "container": "x", "price": "h100", "month": "2026-11", "budget": "month", "grant": "grant_x", "node": "n1",
    "issuer": "corp", "name": "token", "pool": "spare", "model": "acme/tiny", "file": "file-0",
    "version": "1", "alias": "prod", "key": "k", "word": "pause",
}  # fmt: skip


def filled(path: str) -> str:
    return path.format_map(PLACES | ({"model": "shop.hello"} if path.startswith("/v2") else {}))


def written_in(method: str, path: str) -> str:
    """The type of an operation's errors."""
    (found,) = [op for op in OPERATIONS if (op.method, op.path) == (method, path)]
    return SHAPES[found.dialect].media_type


@pytest.mark.parametrize(("method", "path"), GUARDED)
async def test_every_guarded_route_wants_a_key_first(world: World, method: str, path: str) -> None:
    """401 without one, whatever else is wrong, and 403 with one that has no scope."""
    for key, status in (("", 401), (str(world.add_key("acme")), 403)):
        async with world.client(key) as client:
            answer = await client.request(method, filled(path), content=b"garbage")
        assert answer.status_code == status
        assert answer.headers["content-type"] == written_in(method, path)


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [("PATCH", "/v1/keys", {"GET", "HEAD", "POST"}), ("GET", "/v1/functions/a.b/calls", {"POST"}),
     ("POST", "/healthz", {"GET", "HEAD"})],
)  # fmt: skip
async def test_a_wrong_method_is_told_the_right_ones(world: World, method: str, path: str, allow: set[str]) -> None:
    """405 with Allow, also where the call endpoint has a way of its own."""
    async with world.client() as client:
        answer = await client.request(method, path)

    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) == allow


@pytest.mark.parametrize("path", ["/", "/v3", "/v1", "/v1/apps/", "/v1//apps", "/openapi.json/x"])
async def test_an_unknown_address_is_not_found(world: World, path: str) -> None:
    """As a problem document, too."""
    async with world.client() as client:
        answer = await client.get(path)

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_request_id_is_never_given_twice(world: World) -> None:
    """In every answer, good or bad."""
    async with world.client() as client:
        ids = {(await client.get(path)).headers["x-request-id"] for path in ("/healthz", "/nothing", "/healthz")}

    assert len(ids) == 3


async def test_heads_are_answered_like_gets(world: World) -> None:
    """Load balancers ask with HEAD."""
    async with world.client() as client:
        assert (await client.head("/healthz")).status_code == 200


async def test_what_is_not_http_is_refused_by_the_router(world: World) -> None:
    """A websocket is closed, not crashed into."""
    wire = Wire()
    scope = {"type": "websocket", "path": "/v1/apps", "headers": [], "query_string": b"", "subprotocols": []}

    await world.app(scope, wire.receive, wire.send)

    assert wire.sent == [{"type": "websocket.close", "code": 1000, "reason": ""}]


async def test_a_client_that_hangs_up_while_sending_gets_no_answer(world: World) -> None:
    """There is nobody to answer, and nothing is logged as an error."""
    wire = Wire(pieces=[b"{"], stall=True)
    wire.gone.set()

    await ask(world.app, wire, "POST", "/v1/keys", authorization=f"Bearer {world.key}")

    assert wire.sent == []
