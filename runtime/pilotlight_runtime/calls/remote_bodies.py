"""Large inputs and answers, exchanged with the origin's internal listener under one-time tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from pilotlight_core.host.http_client import HttpClient, NoHttpClient
from pilotlight_core.model.messages.call_messages import BodyRef

if TYPE_CHECKING:
    import httpx

AT_ONCE = 8
"""Transfers at a time, so that they do not slow each other past their deadlines."""
MAX_BODY = 16 * 2**20
"""Whatever size the origin declares."""
BUDGET = 512 * 2**20
"""Bytes of all transfers, including waiting ones."""
TIMEOUTS = (1.0, 10.0, 10.0, 10.0)
"""Seconds to connect, without a byte read or written, and for a free connection."""
TRIES = 2
"""A restarted listener refuses the first connection at most."""

log = structlog.get_logger(__name__)


class BodyTransfers:
    """Transfers bodies in tasks of `group`; `budget` bounds their bytes together.

    Gateways' certificates may be of the authorities in `ca_file`, too.
    """

    def __init__(self, group: asyncio.TaskGroup, budget: int = BUDGET, *, ca_file: str = "") -> None:
        self._group = group
        self._budget = budget
        self._used = 0
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._client = HttpClient(connections=AT_ONCE, ca_file=ca_file, timeout=TIMEOUTS, trust_env=False)

    def fetch(self, ref: BodyRef, done: Callable[[bytes | None], None]) -> None:
        """Fetch a body; `done` is called once with its bytes, or None if it cannot be had whole."""
        if ref.size > MAX_BODY or self._used + ref.size > self._budget:
            asyncio.get_running_loop().call_soon(done, None)
            return
        self._used += ref.size
        self._group.create_task(self._fetch(ref, done))

    def upload(self, ref: BodyRef | None, data: bytes, done: Callable[[bool], None]) -> None:
        """Upload an answer; `done` is called once with whether the origin took it."""
        if ref is None or len(data) > MAX_BODY or self._used + len(data) > self._budget:
            asyncio.get_running_loop().call_soon(done, False)  # noqa: FBT003 - it is the answer
            return
        self._used += len(data)
        self._group.create_task(self._upload(ref, data, done))

    async def close(self) -> None:
        await self._client.aclose()

    async def _fetch(self, ref: BodyRef, done: Callable[[bytes | None], None]) -> None:
        data = None
        try:
            async with self._turns:
                data = await self._get(ref)
        finally:
            self._used -= ref.size
            done(data)

    async def _get(self, ref: BodyRef) -> bytes | None:
        try:
            client = await self._client.get()
        except NoHttpClient:
            log.exception("a body cannot be fetched")
            return None
        import httpx

        failed: httpx.HTTPError | None = None
        for _ in range(TRIES):
            try:
                return await _read(client, ref)
            except httpx.ConnectError as error:
                failed = error
            except httpx.HTTPError as error:  # it can be read once, and perhaps was
                failed = error
                break
        log.warning("a body cannot be fetched from its gateway", **_place(ref), error=repr(failed))
        return None

    async def _upload(self, ref: BodyRef, data: bytes, done: Callable[[bool], None]) -> None:
        taken = False
        try:
            async with self._turns:
                taken = await self._put(ref, data)
        finally:
            self._used -= len(data)
            done(taken)

    async def _put(self, ref: BodyRef, data: bytes) -> bool:
        try:
            client = await self._client.get()
        except NoHttpClient:
            log.exception("a body cannot be uploaded")
            return False
        import httpx

        failed: httpx.HTTPError | None = None
        for _ in range(TRIES):
            try:
                response = await client.put(ref.url, content=data, headers=_headers(ref))
            except httpx.HTTPError as error:
                failed = error
            else:
                return response.is_success
        log.warning("an answer cannot be left at its gateway", **_place(ref), error=repr(failed))
        return False


async def _read(client: httpx.AsyncClient, ref: BodyRef) -> bytes | None:
    parts, size = [], 0
    async with client.stream("GET", ref.url, headers=_headers(ref)) as response:
        if response.status_code != 200:
            return None
        async for part in response.aiter_raw():
            parts.append(part)
            size += len(part)
            if size > ref.size:
                return None
    return b"".join(parts) if size == ref.size else None


def _place(ref: BodyRef) -> dict[str, str]:
    """Where it is, without its token: `--internal-url` of the gateway may be wrong, or the way there closed."""
    parts = urlsplit(ref.url)
    return {"gateway": f"{parts.scheme}://{parts.netloc}"}


def _headers(ref: BodyRef) -> dict[str, str]:
    return {"authorization": f"Bearer {ref.token}", "content-type": "application/octet-stream"}
