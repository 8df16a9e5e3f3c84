"""What the platform counted of functions' calls."""

from __future__ import annotations

from urllib.parse import quote

from pilotlight.client.resources.platform import PlatformClient
from pilotlight_core.model.api.seeing.tally_api import FunctionStats, StatsList


class StatsClient:
    """Reads what calls were lately. Windows and steps are like "10m" or "2h"."""

    def __init__(self, platform: PlatformClient) -> None:
        self._platform = platform

    async def get_stats(self, ref: str, window: str = "10m", step: str = "") -> FunctionStats:
        """Return what the calls of a function were; with `step` also as a series."""
        asked = {"window": window} | ({"step": step} if step else {})
        path = f"/v1/functions/{quote(ref, safe=':@')}/stats"
        return await self._platform.request("GET", path, params=asked, answer_type=FunctionStats)

    async def list_stats(self, window: str = "10m", limit: int = 50) -> StatsList:
        """Return the same of all functions in short, those with the most calls first."""
        asked = {"window": window, "limit": str(limit)}
        return await self._platform.request("GET", "/v1/stats", params=asked, answer_type=StatsList)
