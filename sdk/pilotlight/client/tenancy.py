"""Tenants, keys, limits, tiers and shared functions: what operators and tenants' admins ask for."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from pilotlight.client.platform import Json, Platform
from pilotlight_core.model.api.call_api import KeyRequest
from pilotlight_core.model.api.tenancy_api import FunctionShareRequest, RotateRequest, TenantChange, TenantRequest


class Tenancy:
    """What is asked about tenants. A key's `tenant` is None for one's own, or named by an operator."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def tenants(self) -> list[Json]:
        """All tenants."""
        return list((await self._get("/v1/tenants"))["tenants"])

    async def tenant(self, name: str) -> Json:
        """One tenant."""
        return await self._get(_path("tenants", name))

    async def create_tenant(self, request: TenantRequest) -> Json:
        """Make a tenant."""
        return await self._send("POST", "/v1/tenants", request)

    async def change_tenant(self, name: str, change: TenantChange) -> Json:
        """Change what `change` gives."""
        return await self._send("PATCH", _path("tenants", name), change)

    async def keys(self, tenant: str | None) -> list[Json]:
        """The API keys, without their secrets."""
        return list((await self._get(_keys(tenant)))["keys"])

    async def create_key(self, request: KeyRequest, tenant: str | None) -> Json:
        """A new API key; its secret is in this answer and nowhere else."""
        return await self._send("POST", _keys(tenant), request)

    async def rotate_key(self, key: str, request: RotateRequest, tenant: str | None) -> Json:
        """A key that follows another one."""
        return await self._send("POST", f"{_keys(tenant, key)}/rotate", request)

    async def revoke_key(self, key: str, tenant: str | None, *, force: bool = False) -> Json:
        """End a key; `already` says whether it had ended before. With `force` also the last that manages keys."""
        params = {"force": "true"} if force else None
        return await self._platform.ask("DELETE", _keys(tenant, key), params=params, answer_type=dict[str, Any])

    async def limits(self, tenant: str) -> Json:
        """What is set for a tenant, and what holds."""
        return await self._get(_path("tenants", tenant, "limits"))

    async def set_limits(self, tenant: str, function: str | None, limits: Json, *, ahead: bool = False) -> Json:
        """Replace what is set for a tenant, or for its calls to one function, which with `ahead` may not exist yet."""
        path, params = _path("tenants", tenant, "limits", function), {"ahead": "true"} if ahead else None
        return await self._platform.ask("PUT", path, body=limits, params=params, answer_type=dict[str, Any])

    async def clear_limits(self, tenant: str, function: str | None) -> None:
        """Return to the tier's limits."""
        await self._platform.tell("DELETE", _path("tenants", tenant, "limits", function))

    async def tiers(self) -> list[Json]:
        """The tiers, those that are shed first first."""
        return list((await self._get("/v1/tiers"))["tiers"])

    async def set_tier(self, name: str, tier: Json) -> Json:
        """Make a tier, or put another over the configured one."""
        return await self._send("PUT", _path("tiers", name), tier)

    async def drop_tier(self, name: str) -> None:
        """Return to the configured tier, or be without it."""
        await self._platform.tell("DELETE", _path("tiers", name))

    async def shares(self, app: str) -> list[Json]:
        """The tenants that may call an app's functions."""
        return list((await self._get(_path("apps", app, "shares")))["shares"])

    async def share(self, app: str, tenant: str, functions: tuple[str, ...]) -> Json:
        """Let a tenant, or with * everybody, call functions of an app; none named: all."""
        return await self._send("PUT", _path("apps", app, "shares", tenant), FunctionShareRequest(functions=functions))

    async def unshare(self, app: str, tenant: str) -> None:
        """End that."""
        await self._platform.tell("DELETE", _path("apps", app, "shares", tenant))

    async def shared(self) -> list[Json]:
        """The functions of other tenants that one may call."""
        return list((await self._get("/v1/shared"))["shared"])

    async def _get(self, path: str) -> Json:
        return await self._platform.ask("GET", path, answer_type=dict[str, Any])

    async def _send(self, method: str, path: str, body: msgspec.Struct | Json) -> Json:
        return await self._platform.ask(method, path, body=body, answer_type=dict[str, Any])


def _path(*parts: str | None) -> str:
    return "/v1/" + "/".join(quote(part, safe="*:") for part in parts if part is not None)


def _keys(tenant: str | None, key: str | None = None) -> str:
    return _path("keys", key) if tenant is None else _path("tenants", tenant, "keys", key)
