"""Ends what nobody may go on with: requests whose key ended, and calls whose tenant was disabled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NoReturn, Protocol

from pilotlight_gateway.http.protocol.http_exchange import OpenRequests
from pilotlight_gateway.tenancy.auth import KeyAuthenticator
from pilotlight_gateway.tenancy.registry_port import TenantRegistry

CHECK_EVERY_S = 1.0


class CallEnder(Protocol):
    """The calls that this gateway is the origin of."""

    def end_calls_of(self, is_over: Callable[[str], bool], reason: str) -> int:
        """Cancel the calls of the tenants for which `is_over` is true; how many."""
        ...


class PrincipalWatch:
    """Checks each second, from memory: a revocation, an expiry or a disabled tenant shows within it."""

    def __init__(
        self, requests: OpenRequests, calls: CallEnder, authenticator: KeyAuthenticator, registry: TenantRegistry
    ) -> None:
        self._requests = requests
        self._calls = calls
        self._authenticator = authenticator
        self._registry = registry

    def check(self) -> int:
        """End what has to end; how many requests and calls that was."""
        # The requests first: their callers hear why, and a call that ends with its request needs no other end.
        ended = self._requests.end_revoked(self._authenticator.why_ended)
        return ended + self._calls.end_calls_of(self._is_disabled, "Its tenant was disabled.")

    async def run(self) -> NoReturn:
        while True:
            await asyncio.sleep(CHECK_EVERY_S)
            self.check()

    def _is_disabled(self, name: str) -> bool:
        tenant = self._registry.tenant_nowait(name)
        return tenant is not None and tenant.disabled
