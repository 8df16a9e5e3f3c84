"""The gateways are asked within bounds, and what is read is kept for a second for those who would be told the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pilotlight_gateway.dashboard.page_parts import gateway_client
from pilotlight_gateway.dashboard.page_parts.gateway_client import (
    KEPT_AT_MOST,
    AnswerCache,
    ApiAnswer,
    ApiProblem,
    GatewayClient,
)
from tests.gateway.world import Clock

Handler = Any


@asynccontextmanager
async def listening(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that gives one answer to everybody, and what it was asked."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        asked.append(head + await reader.readexactly(length))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


def http(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


NOBODY = "http://127.0.0.1:9"


async def test_the_next_gateway_is_asked_while_one_does_not_answer() -> None:
    """With the viewer's token and no other; that one is asked first from then on."""
    async with listening(http(b'{"a": 1}')) as (url, asked):
        client = GatewayClient([NOBODY, url])
        answer = await client.ask("POST", "/v1/x?y=1", "pl_session_t", {"b": 2})
        await client.ask("GET", "/v1/x")
        await client.aclose()
    assert answer.value() == {"a": 1}
    assert asked[0].startswith(b"POST /v1/x?y=1 HTTP/1.1\r\n")
    assert b"authorization: Bearer pl_session_t\r\n" in asked[0]
    assert asked[0].endswith(b'{"b":2}')
    assert b"authorization" not in asked[1]


async def test_where_none_answers_it_says_so() -> None:
    """What may have been done is not asked for twice."""
    client = GatewayClient([NOBODY])
    with pytest.raises(ApiProblem) as caught:
        await client.ask("GET", "/v1/x")
    assert (caught.value.status, caught.value.code) == (0, "unreachable")
    async with listening(b"") as (url, asked):
        broken = GatewayClient([url, url])
        with pytest.raises(ApiProblem) as caught:
            await broken.ask("POST", "/v1/x")
        assert (caught.value.code, len(asked)) == ("call_lost", 1)
        with pytest.raises(ApiProblem):
            await broken.ask("GET", "/v1/x")
        assert len(asked) == 3
        await broken.aclose()
    await client.aclose()


async def test_an_answer_that_is_too_large_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read to its end."""
    monkeypatch.setattr(gateway_client, "ANSWER_BYTES", 10)
    async with listening(http(b"x" * 11)) as (url, _):
        client = GatewayClient([url])
        with pytest.raises(ApiProblem) as caught:
            await client.ask("GET", "/v1/x")
        await client.aclose()
    assert caught.value.code == "too_large"


@pytest.mark.parametrize(
    ("answer", "code", "detail"),
    [
        (ApiAnswer(status=404, body=b'{"code": "not_found", "detail": "None."}'), "not_found", "None."),
        (ApiAnswer(status=502, body=b"<html>"), "internal", "A gateway answered 502."),
        (ApiAnswer(status=200, body=b"<html>"), "internal", "A gateway's answer could not be read."),
    ],
)
def test_a_refusal_is_told_in_the_gateways_words(answer: ApiAnswer, code: str, detail: str) -> None:
    """As far as there are any."""
    with pytest.raises(ApiProblem) as caught:
        answer.value()
    assert (caught.value.code, caught.value.detail) == (code, detail)


def test_an_empty_answer_is_nothing() -> None:
    """Such as that of a removal."""
    assert ApiAnswer(status=204, body=b"").value() is None


class CountingApi:
    """Answers with a number that rises."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.refused: set[str] = set()
        self.open = asyncio.Event()
        self.open.set()

    async def ask(self, method: str, path: str, token: str = "", body: Any = None) -> ApiAnswer:
        self.asked.append((path, token))
        number = len(self.asked)
        await self.open.wait()
        if token in self.refused:
            return ApiAnswer(status=401, body=b"{}")
        return ApiAnswer(status=200, body=b"%d" % number)


async def test_those_who_would_be_told_the_same_are_answered_once_a_second() -> None:
    """Who else asks, is answered by a question of their own."""
    api, clock = CountingApi(), Clock(0.0)
    cache = AnswerCache(api, clock)
    api.open.clear()
    waiting = [asyncio.ensure_future(cache.read("acme", "/v1/x", f"t{n}")) for n in range(3)]
    await asyncio.sleep(0)
    clock.at = 5.0  # a slow answer counts from when it came
    api.open.set()
    assert await asyncio.gather(*waiting) == [1, 1, 1]
    clock.at = 5.9
    assert await cache.read("acme", "/v1/x", "t") == 1
    assert await cache.read("rival", "/v1/x", "t") == 2
    assert await cache.read("acme", "/v1/y", "t") == 3
    clock.at = 6.1
    assert await cache.read("acme", "/v1/x", "t") == 4


async def test_a_refusal_is_nobody_elses() -> None:
    """Whoever waited for an answer to a session that has ended asks with their own."""
    api = CountingApi()
    api.refused.add("ended")
    cache = AnswerCache(api, Clock(0.0))
    api.open.clear()
    first = asyncio.ensure_future(cache.read("acme", "/v1/x", "ended"))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(cache.read("acme", "/v1/x", "good"))
    await asyncio.sleep(0)
    api.open.set()
    with pytest.raises(ApiProblem):
        await first
    assert await second == 2
    assert await cache.read("acme", "/v1/x", "good") == 2


async def test_what_is_kept_is_bounded() -> None:
    """The oldest go."""
    api = CountingApi()
    cache = AnswerCache(api, Clock(0.0))
    for n in range(KEPT_AT_MOST + 5):
        await cache.read("acme", f"/v1/{n}", "t")
    assert len(cache) == KEPT_AT_MOST
