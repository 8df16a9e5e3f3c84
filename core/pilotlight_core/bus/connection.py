"""The part of `Bus` that leases, mirrors and readers use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from pilotlight_core.bus.client import Subscription
from pilotlight_core.bus.jetstream import JetStream
from pilotlight_core.bus.kv import Kv


class BusConnection(Protocol):
    jetstream: JetStream
    on_reconnect: list[Callable[[], Awaitable[None]]]

    def kv(self, bucket: str) -> Kv: ...

    async def doorbell(self, subject: str, ring: Callable[[], None]) -> Subscription: ...

    def listening(self, *, bells: Mapping[str, Callable[[], None]]) -> AbstractAsyncContextManager[None]: ...

    def spawn(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...

    async def end(self, job: asyncio.Task[None]) -> None: ...
