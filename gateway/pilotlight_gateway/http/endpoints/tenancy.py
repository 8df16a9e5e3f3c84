"""The operations on tenants, tiers, limits, keys and shared functions.

Operations with the scope `operator` see all tenants, the others only the caller's.
"""

from __future__ import annotations

from pilotlight_core.model.api.call_api import KeyRequest
from pilotlight_core.model.api.tenancy_api import (
    FunctionLimitsInfo,
    FunctionShareInfo,
    FunctionShareRequest,
    LimitsInfo,
    RotateRequest,
    SharedFunctions,
    TenantChange,
    TenantInfo,
    TenantRequest,
    TierInfo,
    TierRequest,
)
from pilotlight_core.model.limits import FunctionLimits, Limits
from pilotlight_gateway.http.endpoints import keys, shares, tenants
from pilotlight_gateway.http.protocol.api_operations import BODY, Operation, Parameter, list_of
from pilotlight_gateway.tenancy.api_keys import KeyInfo, NewKey, RevokedKey

FORCE = Parameter(
    name="force", about="Also the last key that may manage keys, or run the platform.", schema={"type": "boolean"}
)

TENANCY = (
    Operation(
        method="POST", path="/v1/keys", name="createKey", about="Make an API key; it is shown only here.", status=201,
        tells=("scopes", "expires_in_s", "label", "break_glass"),
        endpoint=keys.create, scopes=("admin",), request=KeyRequest, answer=NewKey, errors=(*BODY, "conflict"),
        body_required=False,
    ),
    Operation(
        method="GET", path="/v1/keys", name="listKeys", about="The API keys, without their secrets.",
        endpoint=keys.show_keys, scopes=("admin",), answer=list_of("Keys", KeyInfo),
    ),
    Operation(
        method="DELETE", path="/v1/keys/{id}", name="revokeKey", about="End a key.", endpoint=keys.revoke,
        scopes=("admin",), answer=RevokedKey, errors=("not_found", "bad_input", "conflict"), parameters=(FORCE,),
    ),
    Operation(
        method="POST", path="/v1/keys/{id}/rotate", name="rotateKey", status=201, endpoint=keys.rotate,
        tells=("overlap_s", "expires_in_s"),
        about="Replace a key by a new one; both are valid for a while.", scopes=("admin",),
        request=RotateRequest, body_required=False, answer=NewKey, errors=(*BODY, "not_found", "conflict"),
    ),
    Operation(
        method="GET", path="/v1/tenants", name="listTenants", about="All tenants.", endpoint=tenants.list_tenants,
        scopes=("operator",), answer=list_of("Tenants", TenantInfo),
    ),
    Operation(
        method="POST", path="/v1/tenants", name="createTenant", tells=("*",), about="Make a tenant.", status=201,
        endpoint=tenants.create_tenant, scopes=("operator",), request=TenantRequest, answer=TenantInfo,
        errors=(*BODY, "not_found", "conflict"),
    ),
    Operation(
        method="GET", path="/v1/tenants/{tenant}", name="getTenant", about="The caller's own tenant; operators: any.",
        endpoint=tenants.show_tenant, scopes=("read", "operator"), answer=TenantInfo, errors=("not_found",),
    ),
    Operation(
        method="PATCH", path="/v1/tenants/{tenant}", name="changeTenant", tells=("*",), endpoint=tenants.change_tenant,
        about="Change a tenant's tier, weight or network, or disable it with all its keys.", scopes=("operator",),
        request=TenantChange, answer=TenantInfo, errors=(*BODY, "not_found", "conflict", "starting"),
    ),
    Operation(
        method="GET", path="/v1/tenants/{tenant}/limits", name="getLimits", endpoint=tenants.show_limits,
        about="What a tenant may ask for.", scopes=("read", "operator"), answer=LimitsInfo, errors=("not_found",),
    ),
    Operation(
        method="PUT", path="/v1/tenants/{tenant}/limits", name="setLimits", tells=("*",), endpoint=tenants.set_limits,
        about="Replace what is set for a tenant over its tier's limits.", scopes=("operator",), request=Limits,
        answer=LimitsInfo, errors=(*BODY, "not_found", "conflict"),
    ),
    Operation(
        method="DELETE", path="/v1/tenants/{tenant}/limits", name="clearLimits", endpoint=tenants.clear_limits,
        about="Return to the tier's limits.", scopes=("operator",), status=204,
        errors=("not_found", "bad_input", "conflict"),
    ),
    Operation(
        method="GET", path="/v1/tenants/{tenant}/limits/{function}", name="getFunctionLimits",
        endpoint=tenants.show_function_limits, about="What is set for a tenant's calls to one function.",
        scopes=("read", "operator"), answer=FunctionLimitsInfo, errors=("not_found", "bad_input"),
    ),
    Operation(
        method="PUT", path="/v1/tenants/{tenant}/limits/{function}", name="setFunctionLimits", tells=("*",),
        endpoint=tenants.set_function_limits, about="Replace what is set for a tenant's calls to one function.",
        scopes=("operator",), request=FunctionLimits, answer=FunctionLimitsInfo,
        errors=(*BODY, "not_found", "unknown_function", "conflict"),
        parameters=(
            Parameter(name="ahead", about="The function need not be deployed yet.", schema={"type": "boolean"}),
        ),
    ),
    Operation(
        method="DELETE", path="/v1/tenants/{tenant}/limits/{function}", name="clearFunctionLimits", status=204,
        endpoint=tenants.clear_function_limits, about="Remove what is set for a tenant's calls to one function.",
        scopes=("operator",), errors=("not_found", "bad_input", "conflict"),
    ),
    Operation(
        method="POST", path="/v1/tenants/{tenant}/keys", name="createTenantKey", endpoint=keys.create, status=201,
        tells=("scopes", "expires_in_s", "label", "certificate", "break_glass"),
        about="Make an API key of a tenant; it is shown only here.", scopes=("operator",), request=KeyRequest,
        body_required=False,
        answer=NewKey, errors=(*BODY, "not_found", "conflict"),
    ),
    Operation(
        method="GET", path="/v1/tenants/{tenant}/keys", name="listTenantKeys", endpoint=keys.show_keys,
        about="A tenant's API keys, without their secrets.", scopes=("operator",), answer=list_of("Keys", KeyInfo),
        errors=("not_found",),
    ),
    Operation(
        method="DELETE", path="/v1/tenants/{tenant}/keys/{id}", name="revokeTenantKey", endpoint=keys.revoke,
        about="End a tenant's key.", scopes=("operator",), answer=RevokedKey,
        errors=("not_found", "bad_input", "conflict"), parameters=(FORCE,),
    ),
    Operation(
        method="POST", path="/v1/tenants/{tenant}/keys/{id}/rotate", name="rotateTenantKey", endpoint=keys.rotate,
        tells=("overlap_s", "expires_in_s"),
        about="Replace a tenant's key by a new one.", scopes=("operator",), status=201,
        request=RotateRequest, body_required=False, answer=NewKey, errors=(*BODY, "not_found", "conflict"),
    ),
    Operation(
        method="GET", path="/v1/tiers", name="listTiers", about="The tiers, in the order of shedding.",
        endpoint=tenants.list_tiers, scopes=("operator",), answer=list_of("Tiers", TierInfo),
    ),
    Operation(
        method="GET", path="/v1/tiers/{tier}", name="getTier", about="A tier.", endpoint=tenants.show_tier,
        scopes=("operator",), answer=TierInfo, errors=("not_found",),
    ),
    Operation(
        method="PUT", path="/v1/tiers/{tier}", name="setTier", tells=("*",), endpoint=tenants.put_tier,
        about="Create a tier, or replace the configured one.", scopes=("operator",), request=TierRequest,
        answer=TierInfo, errors=(*BODY, "conflict"),
    ),
    Operation(
        method="DELETE", path="/v1/tiers/{tier}", name="dropTier", endpoint=tenants.drop_tier, status=204,
        about="Remove a tier, or return to the configured one.", scopes=("operator",),
        errors=("not_found", "bad_input", "conflict"),
    ),
    Operation(
        method="GET", path="/v1/apps/{app}/shares", name="listShares", endpoint=shares.list_shares,
        about="The tenants that may call an app's functions.", scopes=("read", "deploy"),
        answer=list_of("Shares", FunctionShareInfo), errors=("not_found", "bad_input"),
    ),
    Operation(
        method="PUT", path="/v1/apps/{app}/shares/{grantee}", name="shareApp", tells=("*",), endpoint=shares.put_share,
        about="Let a tenant, or with * everybody, call functions of an app.", scopes=("deploy",),
        request=FunctionShareRequest, body_required=False, answer=FunctionShareInfo,
        errors=(*BODY, "not_found", "conflict", "quota_exceeded"),
    ),
    Operation(
        method="DELETE", path="/v1/apps/{app}/shares/{grantee}", name="unshareApp", endpoint=shares.drop_share,
        about="End the sharing of an app with a tenant.", scopes=("deploy",), status=204,
        errors=("not_found", "bad_input", "conflict"),
    ),
    Operation(
        method="GET", path="/v1/shared", name="listShared", endpoint=shares.list_shared,
        about="The functions of other tenants that the caller may call, by ref.", scopes=("invoke", "read"),
        answer=SharedFunctions, errors=("bad_input",),
        parameters=(
            Parameter(
                name="everybody", about="Also those that are shared with everybody, not with the caller by name.",
                schema={"type": "boolean"},
            ),
            Parameter(name="owner", about="Only this tenant's."),
            Parameter(
                name="limit", about="Functions on a page.", schema={"type": "integer", "minimum": 1, "maximum": 1000}
            ),
            Parameter(name="cursor", about="`next` of the page before."),
        ),
    ),
)  # fmt: skip
