"""Calls that failed, were slow or were sampled, and why."""

from __future__ import annotations

from urllib.parse import quote

from pilotlight.client.resources.platform import PlatformClient
from pilotlight_core.model.api.seeing.trace_api import CallExplanation, KeptCallList


class KeptCallsClient:
    """Requests of `/v1/calls` about what is kept."""

    def __init__(self, platform: PlatformClient) -> None:
        self._platform = platform

    async def list_kept(self, function: str = "", kept: str = "", limit: int | None = None) -> KeptCallList:
        """Return kept calls, the newest first: of one function, or kept for one reason."""
        asked = {"function": function, "kept": kept, "limit": "" if limit is None else str(limit)}
        params = {name: value for name, value in asked.items() if value}
        return await self._platform.request("GET", "/v1/calls", params=params, answer_type=KeptCallList)

    async def explain_call(self, call_id: str) -> CallExplanation:
        """Return why a call was slow, failed or was refused, by the id that its answer or its error names."""
        path = f"/v1/calls/{quote(call_id, safe='')}/explanation"
        return await self._platform.request("GET", path, answer_type=CallExplanation)
