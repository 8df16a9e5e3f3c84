"""Batches: many inputs as one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import quote

import msgspec

from pilotlight.client.connection import Connection, Content
from pilotlight.client.platform import Json, Platform
from pilotlight.client.retry import Patience
from pilotlight.errors import BadOutput

UPLOAD_SILENCE_S = 600.0
"""Every line is checked before the answer comes."""


class Batches:
    """What is asked about batches."""

    def __init__(self, connection: Connection, platform: Platform) -> None:
        self._connection = connection
        self._platform = platform

    async def submit(self, params: dict[str, str], key: str, read: Callable[[], Content]) -> Json:
        """Submit JSON lines; `read` is called anew for each attempt, all of which are the same batch by `key`."""
        headers = {"Content-Type": "application/x-ndjson", "Accept": "application/json", "Idempotency-Key": key}

        async def attempt() -> bytes:
            return await self._connection.fetch(
                "POST", "/v1/batches", content=read(), headers=headers, params=params, timeout=UPLOAD_SILENCE_S
            )

        try:
            return msgspec.json.decode(await Patience(repeatable=True).retrying(attempt), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise BadOutput(f"The platform's answer cannot be read: {error}.") from error

    async def all(self) -> list[Json]:
        """The batches, newest first."""
        return list((await self._ask("GET", "/v1/batches"))["batches"])

    async def get(self, batch: str) -> Json:
        """How far a batch is."""
        return await self._ask("GET", _path(batch))

    async def cancel(self, batch: str) -> Json:
        """Submit no more of it and cancel what waits."""
        return await self._ask("POST", f"{_path(batch)}/cancel")

    async def resume(self, batch: str) -> Json:
        """Go on with a cancelled one."""
        return await self._ask("POST", f"{_path(batch)}/resume")

    async def results(self, batch: str, states: str) -> AsyncIterator[bytes]:
        """The lines of its results as they come, in pieces; of these states only ("": all)."""
        params = {"state": states} if states else {}
        async with self._connection.open("GET", f"{_path(batch)}/results", params=params, timeout=60.0) as answer:
            async for piece in answer.aiter_bytes():
                yield piece

    async def _ask(self, method: str, path: str) -> Json:
        return await self._platform.ask(method, path, answer_type=dict[str, Any])


def _path(batch: str) -> str:
    return f"/v1/batches/{quote(batch, safe='')}"
