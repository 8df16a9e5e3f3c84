"""One request over HTTP, against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from pilotlight.upstream import upstream_client
from pilotlight.upstream.upstream_client import HttpTransport, key_headers, retry_after_of
from pilotlight.upstream.upstream_port import NotRun, Overloaded, UpstreamAddress, UpstreamError


@pytest.fixture
def anyio_backend() -> str:
    """aiohttp is asyncio's."""
    return "asyncio"


def address(url: str, **more: Any) -> UpstreamAddress:
    fields = {"header": "X-Key", "prefix": "k ", "key_variable": "", "authority_file": ""}
    return UpstreamAddress(url, **fields | more)


@asynccontextmanager
async def api(answer: web.Response | None = None, *, seconds: float = 0.0) -> AsyncIterator[tuple[str, list[Any]]]:
    """A server that gives one answer, by default what it is sent; and what it has seen."""
    seen: list[Any] = []

    async def serve(request: web.Request) -> web.Response:
        seen.append((dict(request.headers), await request.json()))
        await asyncio.sleep(seconds)
        return answer if answer is not None else web.json_response(await request.json())

    app = web.Application()
    app.router.add_post("/x", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/x", seen
    finally:
        await runner.cleanup()


async def post(where: UpstreamAddress, timeout_s: float = 20.0) -> Any:
    transport = HttpTransport(where, 4)
    try:
        return await transport.post('{"n": 1}', timeout_s)
    finally:
        await transport.close()


async def test_json_goes_and_comes(anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the key in its header."""
    monkeypatch.setenv("KEY", "secret")
    async with api() as (url, seen):
        assert await post(address(url, key_variable="KEY")) == {"n": 1}
    headers, body = seen[0]
    assert (headers["X-Key"], headers["content-type".title()], body) == ("k secret", "application/json", {"n": 1})
    with pytest.raises(UpstreamError, match="expected one in NONE"):
        key_headers(address(url, key_variable="NONE"), {})


@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        (web.Response(status=429, headers={"retry-after": "3"}), NotRun, "429"),
        (web.Response(status=503, headers={"retry-after": "3"}, text="full"), Overloaded, "503: full"),
        (web.Response(status=302, headers={"location": "http://127.0.0.1/"}), UpstreamError, "not followed"),
        (web.Response(status=400, text="bad"), UpstreamError, "400: bad"),
        (web.Response(text="no json"), UpstreamError, "not JSON: no json"),
        (web.Response(text="x" * 200), UpstreamError, "longer than 100"),
    ],
)
async def test_what_is_no_answer_is_an_error(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch, answer: web.Response, error: type[Exception], why: str
) -> None:
    """Each by what is known of it."""
    monkeypatch.setattr(upstream_client, "ANSWER_BYTES", 100)
    async with api(answer) as (url, _):
        with pytest.raises(error, match=why) as raised:
            await post(address(url))
    if isinstance(raised.value, NotRun | Overloaded):
        assert raised.value.retry_after_s == 3.0
    assert not isinstance(raised.value, NotRun) or raised.value.is_refusal


async def test_nobody_there_is_no_run_and_silence_may_be(anyio_backend: str) -> None:
    """So only the first is repeated."""
    async with api(seconds=5.0) as (url, _):
        with pytest.raises(Overloaded, match=r"no answer within 0\.05 s"):
            await post(address(url), 0.05)
    with pytest.raises(NotRun, match="no connection"):
        await post(address(url))


async def test_a_certificate_is_verified(anyio_backend: str) -> None:
    """What does not speak TLS as it should is not spoken to."""
    async with api() as (url, seen):
        with pytest.raises(NotRun):
            await post(address(url.replace("http:", "https:")))
    assert seen == []


def test_a_time_to_wait_is_a_number_or_a_date() -> None:
    """Nonsense is none."""
    texts = ("1.5", "Thu, 01 Jan 1970 00:01:40 GMT", "inf", "nan", "", "soon", "Fri, 99 Dec 1999 23:59:59 GMT")
    told = [retry_after_of({"retry-after": text}, 60.0) for text in texts]
    assert told == [1.5, 40.0, None, None, None, None, None]
