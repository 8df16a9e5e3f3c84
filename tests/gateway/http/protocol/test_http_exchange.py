"""An exchange names its request in every answer, and remembers what was answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from starlette.types import Message, Scope

from pilotlight_gateway.http.protocol.http_exchange import KEY, SERVED, Exchange, exchange_of, header


class Client:
    """Takes what is sent."""

    def __init__(self) -> None:
        self.sent: list[Message] = []

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])


class Server:
    """Our server, which sends a whole answer at once if it can."""

    def __init__(self, *, can: bool) -> None:
        import asyncio

        self.loop = asyncio.get_running_loop()
        self.whole: list[tuple[int, Sequence[tuple[bytes, bytes]], bytes]] = []
        self._can = can

    def take_body(self) -> bytes | None:
        return None

    def send_whole(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
        if self._can:
            self.whole.append((status, headers, body))
        return self._can

    @property
    def takes_pieces(self) -> bool:
        return self._can

    def send_piece(self, piece: bytes) -> bool:
        return self._can


async def exchange(client: Client, scope: Scope | None = None) -> Exchange:
    return Exchange(scope or {}, client.send, 1.5)


async def test_each_request_has_its_own_name() -> None:
    """In every answer, beside the id of its call."""
    client = Client()
    one, two = await exchange(client), await exchange(client)
    one.call_id = "call_1"
    await one.answer(200, [(b"content-type", b"text/plain")], b"hello")

    assert one.request_id != two.request_id
    assert client.headers() == {
        b"content-type": b"text/plain",
        b"content-length": b"5",
        b"x-request-id": one.request_id.encode(),
        b"pilotlight-call-id": b"call_1",
    }
    assert [message.get("body") for message in client.sent] == [None, b"hello"]
    assert (one.status, two.status, one.arrived_at) == (200, 0, 1.5)


async def test_a_call_and_its_request_have_one_name() -> None:
    """What the error of a failed call names is what the lines of its log have."""
    client = Client()
    made = await exchange(client)
    made.begin_call("call_1")
    await made.answer(500, [], b"")

    headers = client.headers()
    assert (headers[b"x-request-id"], headers[b"pilotlight-call-id"]) == (b"call_1", b"call_1")


async def test_what_an_endpoint_sends_by_itself_is_named_too() -> None:
    """Its head alone."""
    client = Client()
    made = await exchange(client)
    await made({"type": "http.response.start", "status": 204, "headers": [(b"a", b"b")]})
    await made({"type": "http.response.body", "body": b""})

    assert client.headers()[b"x-request-id"] == made.request_id.encode()
    assert made.status == 204
    assert client.sent[1] == {"type": "http.response.body", "body": b""}


@pytest.mark.parametrize("can", [True, False])
async def test_a_server_that_can_sends_an_answer_at_once(can: bool) -> None:
    """One that cannot is sent it as ASGI has it."""
    client, server = Client(), Server(can=can)
    made = await exchange(client, {SERVED: server})
    await made.answer(200, [], b"x")

    assert (len(server.whole), len(client.sent)) == ((1, 0) if can else (0, 2))
    assert made.status == 200


async def test_a_request_finds_its_exchange_and_its_headers() -> None:
    """The first value of a header counts."""
    made = await exchange(Client())
    scope: dict[str, Any] = {KEY: made, "headers": [(b"a", b"1"), (b"a", b"2")]}

    assert exchange_of(scope) is made
    assert (header(scope, b"a"), header(scope, b"b")) == (b"1", b"")
