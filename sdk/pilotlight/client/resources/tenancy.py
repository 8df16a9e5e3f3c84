"""Tenants, keys, limits, tiers and shares, for operators and tenants' admins."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from pilotlight.client.resources.platform import Json, PlatformClient
from pilotlight_core.model.api.budget_api import BudgetInfo, BudgetList, BudgetRequest
from pilotlight_core.model.api.call_api import KeyRequest
from pilotlight_core.model.api.credit_api import CreditList, CreditRequest
from pilotlight_core.model.api.erasure_api import ErasureInfo, ErasureRequest
from pilotlight_core.model.api.seeing.session_api import NewSession, SessionRequest
from pilotlight_core.model.api.tenancy_api import FunctionShareRequest, RotateRequest, TenantChange, TenantRequest

PAGE = 100


class TenancyClient:
    """Requests about tenants. A key's `tenant` is None for the caller's own."""

    def __init__(self, platform: PlatformClient) -> None:
        self._platform = platform

    async def list_tenants(self) -> list[Json]:
        return list((await self._get("/v1/tenants"))["tenants"])

    async def get_tenant(self, name: str) -> Json:
        return await self._get(_path("tenants", name))

    async def create_tenant(self, request: TenantRequest) -> Json:
        return await self._send("POST", "/v1/tenants", request)

    async def update_tenant(self, name: str, change: TenantChange) -> Json:
        """Change the fields that `change` gives."""
        return await self._send("PATCH", _path("tenants", name), change)

    async def plan_erasure(self, name: str) -> ErasureInfo:
        """Disable a tenant, and return what erasing it would delete."""
        return await self._platform.request("POST", _path("tenants", name, "erasure"), answer_type=ErasureInfo)

    async def erase_tenant(self, name: str, confirmation: str) -> ErasureInfo:
        """Erase a tenant whose plan gave this confirmation."""
        path, body = _path("tenants", name, "erasure"), ErasureRequest(confirmation=confirmation)
        return await self._platform.request("PUT", path, body=body, answer_type=ErasureInfo)

    async def list_keys(self, tenant: str | None) -> list[Json]:
        """Return the API keys, without their secrets."""
        return list((await self._get(_keys(tenant)))["keys"])

    async def create_key(self, request: KeyRequest, tenant: str | None) -> Json:
        """Make an API key; only this answer has its secret."""
        return await self._send("POST", _keys(tenant), request)

    async def rotate_key(self, key: str, request: RotateRequest, tenant: str | None) -> Json:
        """Make a successor of a key."""
        return await self._send("POST", f"{_keys(tenant, key)}/rotate", request)

    async def make_link(self) -> NewSession:
        """Make the code of a link that opens the dashboard once, within a quarter of an hour."""
        body = SessionRequest(link=True)
        return await self._platform.request("POST", "/v1/sessions", body=body, answer_type=NewSession)

    async def revoke_key(self, key: str, tenant: str | None, *, force: bool = False) -> Json:
        """End a key; with `force` also the last that manages keys."""
        params = {"force": "true"} if force else None
        return await self._platform.request("DELETE", _keys(tenant, key), params=params, answer_type=dict[str, Any])

    async def get_limits(self, tenant: str) -> Json:
        """Return a tenant's own limits, and the effective ones."""
        return await self._get(_path("tenants", tenant, "limits"))

    async def set_limits(self, tenant: str, function: str | None, limits: Json, *, ahead: bool = False) -> Json:
        """Replace a tenant's limits, or those of its calls to one function; `ahead`: of its deploy."""
        path, params = _path("tenants", tenant, "limits", function), {"ahead": "true"} if ahead else None
        return await self._platform.request("PUT", path, body=limits, params=params, answer_type=dict[str, Any])

    async def clear_limits(self, tenant: str, function: str | None) -> None:
        """Return a tenant to its tier's limits."""
        await self._platform.send("DELETE", _path("tenants", tenant, "limits", function))

    async def list_budgets(self, tenant: str) -> BudgetList:
        """Return what a tenant may spend, and what is left of it."""
        return await self._platform.request("GET", _path("tenants", tenant, "budgets"), answer_type=BudgetList)

    async def set_budget(self, tenant: str, budget: BudgetRequest) -> BudgetInfo:
        """Set a tenant's budget of a scope and a period, or replace it."""
        path = _path("tenants", tenant, "budgets")
        return await self._platform.request("PUT", path, body=budget, answer_type=BudgetInfo)

    async def remove_budget(self, tenant: str, budget: str) -> None:
        await self._platform.send("DELETE", _path("tenants", tenant, "budgets", budget))

    async def list_credits(self, tenant: str) -> CreditList:
        """Return what a tenant has paid ahead, and what has come of it."""
        return await self._platform.request("GET", _path("tenants", tenant, "credits"), answer_type=CreditList)

    async def grant_credit(self, tenant: str, credit: CreditRequest) -> CreditList:
        """Give a tenant credit."""
        path = _path("tenants", tenant, "credits")
        return await self._platform.request("POST", path, body=credit, answer_type=CreditList)

    async def end_credit(self, tenant: str, grant: str) -> CreditList:
        """End a grant today."""
        path = _path("tenants", tenant, "credits", grant)
        return await self._platform.request("DELETE", path, answer_type=CreditList)

    async def list_tiers(self) -> list[Json]:
        """Return the tiers, the first shed first."""
        return list((await self._get("/v1/tiers"))["tiers"])

    async def set_tier(self, name: str, tier: Json) -> Json:
        """Make a tier, or replace a configured one."""
        return await self._send("PUT", _path("tiers", name), tier)

    async def delete_tier(self, name: str) -> None:
        """Delete a tier; a configured one of that name holds again."""
        await self._platform.send("DELETE", _path("tiers", name))

    async def list_shares(self, app: str) -> list[Json]:
        """Return the tenants that may call an app's functions."""
        return list((await self._get(_path("apps", app, "shares")))["shares"])

    async def share_app(self, app: str, tenant: str, functions: tuple[str, ...]) -> Json:
        """Let a tenant, or everybody (*), call functions of an app; (): all."""
        return await self._send("PUT", _path("apps", app, "shares", tenant), FunctionShareRequest(functions=functions))

    async def unshare_app(self, app: str, tenant: str) -> None:
        await self._platform.send("DELETE", _path("apps", app, "shares", tenant))

    async def list_shared(
        self, *, everybody: bool = False, owner: str = "", limit: int = PAGE, cursor: str = ""
    ) -> Json:
        """Return a page of other tenants' functions that the caller may call: `shared`, and the cursor `next`.

        `everybody`: also those that are shared with everybody.
        """
        asked = {"everybody": "true" * everybody, "owner": owner, "limit": str(limit), "cursor": cursor}
        params = {name: value for name, value in asked.items() if value}
        return await self._platform.request("GET", "/v1/shared", params=params, answer_type=dict[str, Any])

    async def _get(self, path: str) -> Json:
        return await self._platform.request("GET", path, answer_type=dict[str, Any])

    async def _send(self, method: str, path: str, body: msgspec.Struct | Json) -> Json:
        return await self._platform.request(method, path, body=body, answer_type=dict[str, Any])


def _path(*parts: str | None) -> str:
    return "/v1/" + "/".join(quote(part, safe="*:") for part in parts if part is not None)


def _keys(tenant: str | None, key: str | None = None) -> str:
    return _path("keys", key) if tenant is None else _path("tenants", tenant, "keys", key)
