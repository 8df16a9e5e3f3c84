"""What versions are made of, policies, and keys by which it is signed."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from pilotlight.client.resources.platform import Json, PlatformClient
from pilotlight_core.model.api.supply.supply_api import (
    PolicyInfo,
    ResignedVersions,
    ResignRequest,
    RevokeRequest,
    TrustedKeyRequest,
    VerdictInfo,
)
from pilotlight_core.model.supply.policies import Policy


class SupplyClient:
    def __init__(self, platform: PlatformClient) -> None:
        self._platform = platform

    async def get_document(self, ref: str, kind: str) -> Json:
        """Return a version's `sbom` or `provenance`."""
        path = f"/v1/functions/{quote(ref, safe='@:')}/{kind}"
        return await self._platform.request("GET", path, answer_type=dict[str, Any])

    async def get_verdict(self, ref: str) -> VerdictInfo:
        """Return what policies say of a version now."""
        path = f"/v1/functions/{quote(ref, safe='@:')}/verdict"
        return await self._platform.request("GET", path, answer_type=VerdictInfo)

    async def get_policy(self, *, platform: bool = False) -> PolicyInfo:
        """Return the tenant's policy, or the platform's."""
        return await self._platform.request("GET", _policy(platform=platform), answer_type=PolicyInfo)

    async def set_policy(self, policy: Policy, *, platform: bool = False) -> PolicyInfo:
        """Put a policy on record, whole."""
        path = _policy(platform=platform)
        return await self._platform.request("PUT", path, body=policy, answer_type=PolicyInfo)

    async def remove_policy(self, *, platform: bool = False) -> None:
        """Take a policy off the record."""
        await self._platform.send("DELETE", _policy(platform=platform))

    async def list_trusted(self) -> list[Json]:
        """Return the keys by which the tenant signs."""
        return list((await self._platform.request("GET", "/v1/trusted-keys", answer_type=dict[str, Any]))["keys"])

    async def trust(self, name: str, request: TrustedKeyRequest) -> Json:
        """Put a public key on record."""
        return await self._platform.request("PUT", _trusted(name), body=request, answer_type=dict[str, Any])

    async def revoke(self, name: str, reason: str) -> Json:
        """Let what a key has signed count no more."""
        path, body = f"{_trusted(name)}/revoke", RevokeRequest(reason=reason)
        return await self._platform.request("POST", path, body=body, answer_type=dict[str, Any])

    async def get_signing_keys(self) -> Json:
        """Return the platform's own keys."""
        return await self._platform.request("GET", "/v1/signing-keys", answer_type=dict[str, Any])

    async def publish_signing_keys(self, signed: Json) -> Json:
        """Publish a set of keys as the operator has signed it."""
        return await self._platform.request("PUT", "/v1/signing-keys", body=signed, answer_type=dict[str, Any])

    async def resign(self, after: str = "") -> ResignedVersions:
        """Sign some of the kept versions again; `next` of the answer says where to go on."""
        body = ResignRequest(after=after)
        return await self._platform.request("POST", "/v1/signing-keys/resign", body=body, answer_type=ResignedVersions)


def _policy(*, platform: bool) -> str:
    return "/v1/platform-policy" if platform else "/v1/policy"


def _trusted(name: str) -> str:
    return f"/v1/trusted-keys/{quote(name, safe='')}"
