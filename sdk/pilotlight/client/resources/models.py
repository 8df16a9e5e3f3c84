"""Models of a tenant: the names under which its functions are served."""

from __future__ import annotations

from pilotlight.client.resources.platform import PlatformClient
from pilotlight_core.model.served.model_listing import ModelInfo, ModelListing


class ModelsClient:
    def __init__(self, platform: PlatformClient) -> None:
        self.platform = platform

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the tenant's models by name."""
        return (await self.platform.request("GET", "/v1/models", answer_type=ModelListing)).data
