"""Posts questions to gates; loads the HTTP client at the first one, for most gateways ask no gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from pilotlight_core.host.outbound.address_policy import Network

if TYPE_CHECKING:
    from pilotlight_gateway.webhooks.delivery_attempts import DeliveryOutcome
    from pilotlight_gateway.webhooks.http_sender import HttpSender


class GateSender:
    """An `HttpSender` whose client is made when it is needed.

    `allowed` networks may be reached although not public; `ca_file`: who may vouch for the gates, "": the system's.
    """

    def __init__(self, *, allowed: Sequence[Network] = (), ca_file: str = "") -> None:
        self._allowed = allowed
        self._ca_file = ca_file
        self._stack = AsyncExitStack()
        self._sender: HttpSender | None = None
        self._making = asyncio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Close the client, if there is one, when the block ends."""
        async with self._stack:
            yield

    async def post(self, tenant: str, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryOutcome:
        async with self._making:
            if self._sender is None:
                self._sender = await self._made()
        return await self._sender.post(tenant, url, headers, body)

    async def _made(self) -> HttpSender:
        from pilotlight_gateway.webhooks.http_sender import VettedHttpSender

        sender = await asyncio.to_thread(VettedHttpSender, allowed=self._allowed, ca_file=self._ca_file)
        return await self._stack.enter_async_context(sender)
