"""The size of deployed functions."""

from __future__ import annotations

from urllib.parse import quote

from pilotlight.client.resources.platform import PlatformClient
from pilotlight_core.model.api.autoscaler_api import AutoscalerInfo, AutoscalerRequest


class AutoscalerClient:
    """Reads and changes what functions are held to."""

    def __init__(self, platform: PlatformClient) -> None:
        self._platform = platform

    async def get_bounds(self, ref: str) -> AutoscalerInfo:
        """Return what a function is held to now, and whose word that is."""
        return await self._platform.request("GET", _path(ref), answer_type=AutoscalerInfo)

    async def change_bounds(self, ref: str, asked: AutoscalerRequest) -> AutoscalerInfo:
        """Say otherwise than was deployed; return what holds then."""
        return await self._platform.request("PATCH", _path(ref), body=asked, answer_type=AutoscalerInfo)

    async def reset_bounds(self, ref: str) -> AutoscalerInfo:
        """End all that was said; return what holds then."""
        return await self._platform.request("DELETE", _path(ref), answer_type=AutoscalerInfo)


def _path(ref: str) -> str:
    return f"/v1/functions/{quote(ref, safe=':@')}/autoscaler"
