"""Secrets, whose values go in and never come out."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from pilotlight.client.resources.platform import Json, PlatformClient
from pilotlight_core.model.api.secret_api import SecretRequest


class SecretsClient:
    def __init__(self, platform: PlatformClient) -> None:
        self._platform = platform

    async def list_secrets(self) -> list[Json]:
        """Return the tenant's secrets by name, without their values."""
        return list((await self._platform.request("GET", "/v1/secrets", answer_type=dict[str, Any]))["secrets"])

    async def set(self, name: str, value: str) -> Json:
        """Set a secret's value; return the secret without it."""
        request = SecretRequest(value=value)
        return await self._platform.request("PUT", _path(name), body=request, answer_type=dict[str, Any])

    async def remove(self, name: str) -> None:
        """Remove a secret that no function in service uses."""
        await self._platform.send("DELETE", _path(name))


def _path(name: str) -> str:
    return f"/v1/secrets/{quote(name, safe='')}"
