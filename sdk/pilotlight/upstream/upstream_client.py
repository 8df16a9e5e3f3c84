"""One request to an API over HTTP: TLS verified, no redirects, an answer of bounded length."""

from __future__ import annotations

import json
import math
import os
import ssl
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp

from pilotlight.upstream.upstream_port import NotRun, Overloaded, UpstreamAddress, UpstreamError

ANSWER_BYTES = 10 * 10**6
SHOWN = 300
"""Characters of a text of the API's that an error repeats."""
REFUSED = 429
BUSY = (502, 503, 504)
"""It may have run: it is not repeated. But so many requests were too many."""


class HttpTransport:
    """Over aiohttp, by the proxy that the environment names. Made within the event loop that uses it."""

    def __init__(self, address: UpstreamAddress, connections: int) -> None:
        self._url = address.url
        context = ssl.create_default_context()
        if address.authority_file:
            context.load_verify_locations(address.authority_file)
        connector = aiohttp.TCPConnector(limit=connections, ssl=context)
        self._headers = {"content-type": "application/json", **key_headers(address, os.environ)}
        self._session = aiohttp.ClientSession(connector=connector, trust_env=True)

    async def close(self) -> None:
        await self._session.close()

    async def post(self, body: str, timeout_s: float) -> Any:
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._session.post(
                self._url, data=body.encode(), headers=self._headers, allow_redirects=False, timeout=timeout
            ) as answer:
                text = await _bounded(answer)
                check_status(answer.status, answer.headers, text)
        except (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError) as error:
            raise NotRun(f"no connection: {error}") from error  # before a byte of the request was sent
        except TimeoutError:
            raise Overloaded(f"no answer within {timeout_s:g} s") from None
        except aiohttp.ClientError as error:
            raise UpstreamError(f"The API broke off: {error!r:.{SHOWN}}.") from error
        try:
            return json.loads(text)
        except ValueError:
            raise UpstreamError(f"The API's answer is not JSON: {_shown(text)}.") from None


def key_headers(address: UpstreamAddress, environment: Mapping[str, str]) -> dict[str, str]:
    """The header with the key, if there is to be one.

    Raises:
        UpstreamError: there is no key in the environment.
    """
    if not address.key_variable:
        return {}
    key = environment.get(address.key_variable, "")
    if not key:
        raise UpstreamError(f"There is no key for the API: expected one in {address.key_variable}.")
    return {address.header: f"{address.prefix}{key}"}


def check_status(status: int, headers: Mapping[str, str], text: bytes) -> None:
    """Raises as `UpstreamTransport.post`, unless the answer is good."""
    if 200 <= status < 300:
        return
    if status == REFUSED:
        raise NotRun(f"{status}: {_shown(text)}", is_refusal=True, retry_after_s=retry_after_of(headers, time.time()))
    if status in BUSY:
        raise Overloaded(f"it answered {status}: {_shown(text)}", retry_after_s=retry_after_of(headers, time.time()))
    if 300 <= status < 400:
        raise UpstreamError(f"The API redirects ({status}), which is not followed: name the address that it leads to.")
    raise UpstreamError(f"The API answered {status}: {_shown(text)}.")


def retry_after_of(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds of Retry-After, or until its date; None: there is none that can be read. `now`: unix seconds."""
    text = headers.get("retry-after", "")
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return seconds if math.isfinite(seconds) else None


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in answer.content.iter_any():
        size += len(piece)
        if size > ANSWER_BYTES:
            raise UpstreamError(f"The API's answer is longer than {ANSWER_BYTES} bytes.")
        pieces.append(piece)
    return b"".join(pieces)


def _shown(text: bytes) -> str:
    return text[:SHOWN].decode(errors="replace").strip() or "nothing"
