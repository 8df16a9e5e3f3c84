"""Sends deliveries over HTTP to vetted addresses.

The name is resolved once, its addresses are vetted (`address_policy`), and the connection uses one of them, so a
changed answer (DNS rebinding) gains nothing. Certificate and Host header are the name's. No redirects, no proxy, one
time limit for everything; only status and Retry-After of the answer are used.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from pilotlight_core.host.outbound.address_policy import Network, literal, vetted
from pilotlight_core.host.outbound.name_resolver import DnsResolver, Resolve
from pilotlight_core.lean_libraries import without
from pilotlight_core.model.api.webhook_api import DeliveryAttempt
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.webhooks.delivery_attempts import DeliveryOutcome

with without("trio"):
    import httpcore

TOTAL_SECONDS = 15.0
"""One attempt, with name resolution and answer. Standard Webhooks recommends 15 to 30."""
CONNECT_SECONDS = 5.0
"""For each address, of which `ADDRESSES` are tried."""
ADDRESSES = 3
ANSWER_BYTES = 64 * 1024
ERROR_CHARACTERS = 200
PORTS: Final[Mapping[str, int]] = {"https": 443, "http": 80}


class HttpSender(Protocol):
    """Posts deliveries. Failures of receivers, name servers and networks are outcomes, not exceptions."""

    async def post(self, tenant: str, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryOutcome:
        """Post on behalf of `tenant`; takes at most `TOTAL_SECONDS`."""
        ...


class AddressRefused(Exception):
    """The address policy refuses the connection."""


class VettedHttpSender:
    """The `HttpSender` over the network; an async context manager.

    `allowed` networks may be reached although not public, also by plain http.
    """

    def __init__(
        self,
        *,
        allowed: Sequence[Network] = (),
        ca_file: str = "",
        resolve: Resolve | None = None,
        total_seconds: float = TOTAL_SECONDS,
    ) -> None:
        self._total = total_seconds
        self._names = DnsResolver()
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if ca_file:
            context.load_verify_locations(ca_file)
        self._context = context
        self._allowed = allowed
        self._resolve = resolve or self._names.addresses

    async def __aenter__(self) -> VettedHttpSender:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._names.close()

    async def post(self, tenant: str, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryOutcome:
        at, began = time.time(), time.monotonic()
        status, retry_after, error = 0, None, ""
        try:
            async with asyncio.timeout(self._total):
                status, retry_after = await self._send(tenant, url, headers, body)
        except TimeoutError:
            error = f"no answer within {self._total:g} s"
        except (
            AddressRefused,
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
            OSError,
        ) as problem:
            error = _sentence(problem)
        except (ValueError, UnicodeError) as problem:
            error = f"the address cannot be used: {_sentence(problem)}"
        if 300 <= status < 400:
            error = "redirects are not followed"
        ms = (time.monotonic() - began) * 1000
        return DeliveryOutcome(
            attempt=DeliveryAttempt(at=at, ms=round(ms, 1), status=status, error=error), retry_after=retry_after
        )

    async def _send(self, tenant: str, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, float | None]:
        parts = urlsplit(url)
        origin = httpcore.Origin(
            parts.scheme.encode(), (parts.hostname or "").encode("idna"), parts.port or PORTS[parts.scheme]
        )
        wanted = {
            "host": parts.netloc.rpartition("@")[2],
            "content-length": str(len(body)),
            "connection": "close",
            **headers,
        }
        backend = VettedBackend(self._allowed, partial(self._resolve, tenant))
        # One connection per attempt, so that no rest of an answer becomes part of the next one.
        async with httpcore.AsyncHTTPConnection(
            origin, ssl_context=self._context, network_backend=backend, keepalive_expiry=0.0
        ) as connection:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            request = httpcore.Request(
                b"POST",
                httpcore.URL(scheme=origin.scheme, host=origin.host, port=origin.port, target=target.encode("ascii")),
                headers=[(name.encode(), value.encode("ascii")) for name, value in wanted.items()],
                content=body,
            )
            answer = await connection.handle_async_request(request)
            try:
                await _read_some(answer)
            finally:
                await answer.aclose()
        return answer.status, _retry_after(answer.headers)


class VettedBackend(httpcore.AsyncNetworkBackend):
    """Connects httpcore to vetted addresses only."""

    def __init__(self, allowed: Sequence[Network], resolve: Callable[[str, int], Awaitable[Sequence[str]]]) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - each address has its own
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to one of the host's addresses.

        Raises:
            AddressRefused: one of them is refused.
            OSError, httpcore.NetworkError: none of them answers.
        """
        address = literal(host)
        try:
            addresses = vetted([str(address)] if address else await self._resolve(host, port), self._allowed)
        except BadInput as error:
            raise AddressRefused(error.detail) from None
        problem: Exception = OSError("no address")
        for address in addresses[:ADDRESSES]:
            try:
                return await self._sockets.connect_tcp(
                    str(address), port, CONNECT_SECONDS, local_address, socket_options
                )
            except (httpcore.NetworkError, httpcore.TimeoutException, OSError) as error:
                problem = error
        raise problem

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        raise AddressRefused(f"no sockets of this machine: {path}")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def _read_some(answer: httpcore.Response) -> None:
    """Read the body up to ANSWER_BYTES, so that a receiver is not cut off early."""
    size = 0
    async for piece in answer.aiter_stream():
        size += len(piece)
        if size > ANSWER_BYTES:
            return


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """Seconds; dates are ignored, since the schedule serves as well."""
    for name, value in headers:
        if name.lower() == b"retry-after" and value.isdigit() and len(value) <= 9:
            return float(value)
    return None


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return "".join(letter for letter in text if letter.isprintable())[:ERROR_CHARACTERS]
