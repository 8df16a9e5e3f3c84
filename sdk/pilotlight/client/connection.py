"""HTTP connections to one platform. The only module that touches httpx."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any

import httpx

from pilotlight import __version__
from pilotlight.client.config import ClientConfig
from pilotlight.client.pools import SIZE, Pools
from pilotlight.client.problems import error_of
from pilotlight.errors import PilotlightError, Unreachable
from pilotlight_core.model.errors import error_from_code

CONNECT_S = 5.0
SILENCE_S = 35.0
"""A stream is never silent for longer than its heartbeat of 10 s: three missed ones are a dead connection."""
KEEPALIVE_S = 3.0
"""Shorter than servers' 5 s, so that no request is sent into a connection that is just being closed."""
Content = bytes | AsyncIterator[bytes]


class Connection:
    """Requests to one platform; errors are those of the PilotlightError tree."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self._pools = Pools(self._client, idle_s=KEEPALIVE_S)

    def _client(self) -> httpx.AsyncClient:
        config = self.config
        return httpx.AsyncClient(
            base_url=config.url,
            headers={"Authorization": f"Bearer {config.api_key}", "User-Agent": f"pilotlight-python/{__version__}"},
            timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S, write=60.0, pool=None),
            limits=httpx.Limits(max_connections=SIZE, keepalive_expiry=KEEPALIVE_S),
            verify=self._verify,
            trust_env=not config.is_loopback,
        )

    @cached_property
    def _verify(self) -> ssl.SSLContext | bool:
        """What certificates are checked by: making it takes long, so all pools share it."""
        https = self.config.url.startswith("https:")
        return httpx.create_ssl_context(trust_env=not self.config.is_loopback) if https else False

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        *,
        content: Content | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[httpx.Response]:
        """Send a request and hold its answer open, for its body to be read.

        Args:
            timeout: seconds without a byte after which the connection counts as dead; default `SILENCE_S`.

        Raises:
            Unreachable: if it was never sent.
            UnknownCall: (`call_lost`) if the connection broke after it was sent.
            PilotlightError: as the problem document says.
        """
        await self._pools.tidy()
        with self._transport_errors(), self._pools.one() as client:
            request = client.build_request(method, path, content=content, headers=headers, params=params)
            if timeout is not None:
                request.extensions["timeout"]["read"] = timeout
            response = await client.send(request, stream=True)
            try:
                if response.status_code >= 400:
                    raise _refusal(response.status_code, response.headers, await response.aread())
                yield response
            finally:
                await response.aclose()

    async def fetch(self, method: str, path: str, **how: Any) -> bytes:
        """The whole body of the answer."""
        async with self.open(method, path, **how) as response:
            return await response.aread()

    async def aclose(self) -> None:
        """Close all connections; what runs on them is cancelled by the platform."""
        await self._pools.aclose()

    def _transport_errors(self) -> _Translated:
        return _Translated(self.config.url)


class _Translated:
    """A block in which httpx's errors become ours."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.ProxyError):
            raise Unreachable(f"Nothing answers at {self._url}: {error}.") from error
        if isinstance(error, httpx.ReadTimeout):
            raise lost(f"{self._url} has been silent for too long; the request may have been carried out.") from error
        if isinstance(error, httpx.TransportError):
            raise lost(f"The connection to {self._url} broke; the request may have been carried out.") from error
        if isinstance(error, httpx.InvalidURL | httpx.DecodingError):
            raise error_from_code("bad_request", f"The request to {self._url} failed: {error}.") from error


def lost(detail: str) -> PilotlightError:
    """The error of a call whose answer will not come any more."""
    return error_from_code("call_lost", detail)


def _refusal(status: int, headers: httpx.Headers, body: bytes) -> PilotlightError:
    error: PilotlightError = error_of(
        status, body, retry_after=headers.get("retry-after"), should_retry=headers.get("x-should-retry")
    )
    return error
