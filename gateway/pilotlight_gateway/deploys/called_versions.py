"""The versions that calls name; calls that name what there is not are counted.

Each of those asks the bus, and has its name compared with others: as fast as its caller can write it costs more than a
call does, and tries names by the thousand.
"""

from __future__ import annotations

from pilotlight_core.model.errors import UnknownFunction
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.limits.api_rates import ApiRates


class CalledVersions:
    """Finds versions for calls."""

    def __init__(self, resolver: Resolver, rates: ApiRates) -> None:
        self._resolver = resolver
        self.rates = rates

    async def find(self, tenant: str, ref: str) -> VersionRecord:
        """As `Resolver.resolve`.

        Raises:
            TooMuch: the tenant has called too many that there are not.
        """
        try:
            found = self._resolver.resolve_nowait(tenant, ref)
            if found is None:
                self.rates.check_guess(tenant)
                found = await self._resolver.resolve(tenant, ref)
        except UnknownFunction:
            self.rates.take_guess(tenant)
            raise
        return found
