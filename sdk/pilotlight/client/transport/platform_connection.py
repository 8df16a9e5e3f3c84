"""HTTP connections to one platform, by httpx over aiohttp: its own pool costs five times as much at 64 requests."""

from __future__ import annotations

import os
import socket
import ssl
import weakref
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from pilotlight.client.login.login_keeper import LoginKeeper
from pilotlight.client.transport.config import CA_FILE, ClientConfig, check_place
from pilotlight.client.transport.problems import error_of
from pilotlight.definitions.errors import Misuse, PilotlightError, Unreachable
from pilotlight.definitions.version import VERSION
from pilotlight_core.authorities import certificate_problem, trust_authorities
from pilotlight_core.model.errors import BadInput, error_from_code

CONNECT_S = 5.0
SILENCE_S = 35.0
"""Three heartbeats of a stream, of 10 s each."""
WRITE_S = 60.0
"""How long bytes may stay unacknowledged."""
KEEPALIVE_S = 3.0
"""Below the 5 s of servers, so that no request meets a closing connection."""
MAX_CONNECTIONS = 640
PIECE_BYTES = 256 * 1024
"""Larger bodies are sent in pieces, which do not block the event loop."""
NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
Content = bytes | AsyncIterator[bytes]


class PlatformConnection:
    """Sends requests to one platform. Its errors are PilotlightErrors."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self._login = LoginKeeper(Path(config.login_file), config.url) if config.login_file else None
        self._http: httpx.AsyncClient | None = None
        self.closings = 0
        """How often it was closed: what was read before is not to be read on."""

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
        """Send a request, and yield its answer with the body unread.

        Args:
            timeout: seconds without a byte after which the connection is given up; default `SILENCE_S`.

        Raises:
            Unreachable: if the request was never sent.
            UnknownCall: (`call_lost`) if the connection broke afterwards.
            PilotlightError: as the problem document says.
        """
        body = _Body(content)
        sent = {**(headers or {}), **body.headers}
        if self._login is not None:
            sent["Authorization"] = f"Bearer {await self._login.bearer()}"
        with self._platform_errors(body):
            client = self._client()
            request = client.build_request(method, path, content=body.content, headers=sent, params=params)
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
        """Send a request as `open` does, and return the body of its answer."""
        async with self.open(method, path, **how) as response:
            return await response.aread()

    async def bearer(self) -> str:
        """Return what is sent in the Authorization header; raise as `open`."""
        return self.config.api_key if self._login is None else await self._login.bearer()

    async def aclose(self) -> None:
        """Close all connections, which cancels the live calls on them."""
        self.closings += 1
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            check_place()  # not before: a module may make a client that its container never uses
            config = self.config
            self._http = httpx.AsyncClient(
                base_url=config.url,
                headers={
                    "User-Agent": f"pilotlight-python/{VERSION}",
                    **({"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}),
                },
                timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S, pool=None),
                transport=AiohttpTransport(verify=False, client=self._session, proxy=_proxy_of(config)),
            )
        return self._http

    def _session(self) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=_Connector(
                limit=MAX_CONNECTIONS,
                keepalive_timeout=KEEPALIVE_S,
                ssl=_ssl_context(self.config),
                socket_factory=_socket,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Content-Type",),  # a request without one has no body that it could describe
        )
        # No warning of an open session when a client is dropped, or the process ends, without a close.
        weakref.finalize(self, session.detach)
        return session

    @contextmanager
    def _platform_errors(self, body: _Body) -> Iterator[None]:
        """Raise errors of httpx, aiohttp and the body's source as PilotlightErrors."""
        url = self.config.url
        try:
            yield
        except (httpx.InvalidURL, httpx.DecodingError, httpx.UnsupportedProtocol) as error:
            raise error_from_code("bad_request", f"The request to {url} failed: {error}.") from error
        except (httpx.TransportError, aiohttp.ClientError) as error:
            if body.error is not None:
                raise body.error from None
            # By aiohttp's own error: httpx-aiohttp calls every connection that breaks a timeout of connecting.
            cause = error if isinstance(error, aiohttp.ClientError) else error.__cause__
            if isinstance(cause, NEVER_SENT):
                raise _never_sent(cause, self.config) from error
            if isinstance(cause, TimeoutError):
                raise lost(f"{url} has been silent for too long; the request may have been carried out.") from error
            raise lost(f"The connection to {url} broke; the request may have been carried out.") from error


class _Connector(aiohttp.TCPConnector):
    """Never closed by garbage collection, which in a forked child would change the parent's selector."""

    def __del__(self, *_: Any) -> None:
        pass


class _Body:
    """A request's body, and the error of its source, which aiohttp would report as one of the connection."""

    def __init__(self, content: Content | None) -> None:
        self.error: Exception | None = None
        self.headers: dict[str, str] = {}
        self.content: Content | None = content
        if isinstance(content, bytes) and len(content) > PIECE_BYTES:
            self.headers = {"Content-Length": str(len(content))}
            self.content = _pieces(content)
        elif content is not None and not isinstance(content, bytes):
            self.content = self._watched(content)

    async def _watched(self, source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for piece in source:
                yield piece
        except Exception as error:
            self.error = error
            raise


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), PIECE_BYTES):
        yield content[start : start + PIECE_BYTES]


def _never_sent(cause: BaseException, config: ClientConfig) -> Unreachable:
    inner = getattr(cause, "certificate_error", None) or getattr(cause, "os_error", None) or cause
    if problem := certificate_problem(inner, config.ca_file):
        return Unreachable(f"{config.url} is not trusted: {problem}.")
    if isinstance(inner, ssl.SSLError):
        return Unreachable(f"There is no TLS at {config.url}: {inner.reason or inner}.")
    return Unreachable(f"Nothing answers at {config.url}: {_reason(cause)}.")


def _reason(cause: BaseException) -> str:
    """Return the system's words for a refused connection, which aiohttp wraps in its own, else the error's."""
    number = cause.errno if isinstance(cause, OSError) else None
    return os.strerror(number) if number and number > 0 else str(cause)


def lost(detail: str) -> PilotlightError:
    """Return the error of a request that may have been carried out."""
    return error_from_code("call_lost", detail)


def _refusal(status: int, headers: httpx.Headers, body: bytes) -> PilotlightError:
    return error_of(status, body, retry_after=headers.get("retry-after"), should_retry=headers.get("x-should-retry"))


def _proxy_of(config: ClientConfig) -> httpx.Proxy | None:
    parts = urlsplit(config.url)
    if config.is_loopback or proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):  # NO_PROXY=host:port
        return None
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    return httpx.Proxy(address if "://" in address else f"http://{address}") if address else None


def _ssl_context(config: ClientConfig) -> ssl.SSLContext | bool:
    if not config.url.startswith("https:"):
        return True
    if not config.ca_file:
        return httpx.create_ssl_context(trust_env=not config.is_loopback)
    try:
        return trust_authorities(config.ca_file, CA_FILE)
    except BadInput as error:
        raise Misuse(error.detail, field="ca_file") from error


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # of Linux
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(WRITE_S * 1000))
    return made
