"""Streams of server-sent events from the gateways, such as logs: bounded in number and in length."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Protocol

from pilotlight_core.host.http_client import HttpClient, NoHttpClient
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiAnswer, ApiProblem

STREAMS = 64
CONNECT_S, SILENT_S = 10.0, 60.0
"""A gateway sends a comment each few seconds: one that is silent for so long is gone."""
DATA = b"data: "
LINE_BYTES = 128 * 2**10
REFUSAL_BYTES = 64 * 2**10


class StreamSource(Protocol):
    """Whoever has streams of events."""

    def events(self, path: str, token: str) -> AsyncGenerator[bytes]:
        """The data of a path's events as they come. Raises ApiProblem: it is refused, or breaks off."""
        ...


class GatewayStreams:
    """The gateways at `urls`. Their connections are others than those of answers, which never wait for them."""

    def __init__(self, urls: Sequence[str], *, ca_file: str = "") -> None:
        self._urls = [url.rstrip("/") for url in urls]
        self._next = 0
        self._client = HttpClient(connections=STREAMS, ca_file=ca_file, trust_env=False, follow_redirects=False)

    async def events(self, path: str, token: str) -> AsyncGenerator[bytes]:
        """See `StreamSource`. One that breaks off is asked for at another gateway by whoever wants more."""
        try:
            client = await self._client.get()
        except NoHttpClient as error:
            raise ApiProblem(0, "internal", f"The dashboard cannot ask: {error}.") from None
        import httpx

        headers = {"accept": "text/event-stream", "authorization": f"Bearer {token}"}
        url = self._urls[self._next % len(self._urls)]
        times = httpx.Timeout(CONNECT_S, read=SILENT_S)
        try:
            async with client.stream("GET", url + path, headers=headers, timeout=times) as answer:
                if answer.status_code >= 400:
                    raise ApiAnswer(status=answer.status_code, body=await _refusal(answer.aiter_bytes())).problem()
                async for line in split_lines(answer.aiter_bytes()):
                    if line.startswith(DATA):
                        yield line.removeprefix(DATA)
        except (httpx.HTTPError, TimeoutError):
            self._next += 1
            raise ApiProblem(0, "unreachable", "No gateway answers at the moment.") from None

    async def aclose(self) -> None:
        await self._client.aclose()


async def split_lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The lines of a body that comes in pieces, without the empty ones.

    Raises:
        ApiProblem: one is longer than any is.
    """
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line:
                yield line
        if len(rest) > LINE_BYTES:
            raise ApiProblem(0, "too_large", "A gateway's line is longer than a page can show.")


async def _refusal(pieces: AsyncIterator[bytes]) -> bytes:
    found = b""
    async with asyncio.timeout(CONNECT_S):
        async for piece in pieces:
            found += piece
            if len(found) > REFUSAL_BYTES:
                break
    return found
