"""Batches: many inputs, submitted as one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any
from urllib.parse import quote

import msgspec

from pilotlight.client.resources.platform import Json, PlatformClient
from pilotlight.client.transport.platform_connection import Content, PlatformConnection
from pilotlight.client.transport.retry import RequestRetries
from pilotlight.definitions.errors import BadOutput

UPLOAD_SILENCE_S = 600.0
"""The platform checks every line before it answers."""


class BatchesClient:
    def __init__(self, connection: PlatformConnection, platform: PlatformClient) -> None:
        self._connection = connection
        self._platform = platform

    async def submit(self, params: dict[str, str], key: str, read: Callable[[], Content]) -> Json:
        """Submit JSON lines as one batch, named by `key`; each attempt calls `read` anew.

        Raises:
            BadInput: with `errors`, if lines are wrong.
        """
        headers = {"Content-Type": "application/x-ndjson", "Accept": "application/json", "Idempotency-Key": key}

        async def send() -> bytes:
            return await self._connection.fetch(
                "POST", "/v1/batches", content=read(), headers=headers, params=params, timeout=UPLOAD_SILENCE_S
            )

        try:
            return msgspec.json.decode(await RequestRetries(repeatable=True).run(send), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise BadOutput(f"The platform's answer cannot be read: {error}.") from error

    async def list_batches(self) -> list[Json]:
        """Return the batches, newest first."""
        return list((await self._request("GET", "/v1/batches"))["batches"])

    async def get(self, batch: str) -> Json:
        return await self._request("GET", _path(batch))

    async def cancel(self, batch: str) -> Json:
        """Submit no more of a batch, and cancel its waiting jobs."""
        return await self._request("POST", f"{_path(batch)}/cancel")

    async def resume(self, batch: str) -> Json:
        """Continue a cancelled batch."""
        return await self._request("POST", f"{_path(batch)}/resume")

    async def read_results(self, batch: str, states: str) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a batch's results in pieces, in these `states` ("": all)."""
        params = {"state": states} if states else {}
        async with self._connection.open("GET", f"{_path(batch)}/results", params=params, timeout=60.0) as answer:
            async for piece in answer.aiter_bytes():
                yield piece

    async def _request(self, method: str, path: str) -> Json:
        return await self._platform.request(method, path, answer_type=dict[str, Any])


def _path(batch: str) -> str:
    return f"/v1/batches/{quote(batch, safe='')}"
