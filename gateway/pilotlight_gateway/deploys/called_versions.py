"""The versions that calls name; calls that name what there is not are counted.

Each of those asks the bus, and has its name compared with others: as fast as its caller can write it costs more than a
call does, and tries names by the thousand.
"""

from __future__ import annotations

from typing import Protocol

from pilotlight_core.model.errors import UnknownFunction
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.deploys.resolver import Resolver


class GuessCount(Protocol):
    """How often a tenant's calls name what there is not. The real one is `ApiRates`."""

    def check_guess(self, tenant: str) -> None:
        """Before looking further for what is not in memory. Raises TooMuch: there were too many lately."""
        ...

    def take_guess(self, tenant: str) -> None:
        """Count one. Raises TooMuch: it is one too many."""
        ...


class CalledVersions:
    """Finds versions for calls."""

    def __init__(self, resolver: Resolver, guesses: GuessCount) -> None:
        self._resolver = resolver
        self.guesses = guesses

    async def find(self, tenant: str, ref: str) -> VersionRecord:
        """As `Resolver.resolve`.

        Raises:
            TooMuch: the tenant has called too many that there are not.
        """
        try:
            found = self._resolver.resolve_nowait(tenant, ref)
            if found is None:
                self.guesses.check_guess(tenant)
                found = await self._resolver.resolve(tenant, ref)
        except UnknownFunction:
            self.guesses.take_guess(tenant)
            raise
        return found
