"""Functions that other tenants may call: the caller pays, the owner has the logs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pilotlight_core.model.api.tenancy_api import (
    FunctionShareInfo,
    FunctionShareRequest,
    SharedFunction,
    SharedFunctions,
)
from pilotlight_core.model.errors import Conflict, NotFound
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import AppRecord
from pilotlight_core.model.tenancy import EVERYBODY, FunctionShareRecord
from pilotlight_gateway.tenancy.name_hints import check_function, known_app
from pilotlight_gateway.tenancy.quotas import check_quota
from pilotlight_gateway.tenancy.registry_port import RegistryPort

TENANTS_AT_MOST = 1_000
"""Named grantees of one app."""
PAGE_AT_MOST = 1_000
PAGE = 100
"""Functions in a list, and by default."""


async def share_app(
    registry: RegistryPort, owner: str, app: str, grantee: str, request: FunctionShareRequest
) -> FunctionShareInfo:
    """Let `grantee` ("*": everybody) call functions of an app. Whether it exists is not disclosed.

    Raises:
        NotFound: the owner has no such app, or the app no such function.
        BadInput: `grantee` is not a name.
        Conflict: the app has too many grantees, or `grantee` is the owner.
        QuotaExceeded: the owner shares too many functions with everybody.
    """
    _check_other(owner, grantee)
    record = await known_app(registry, owner, check_name(app, "app"))
    for name in request.functions:
        check_function(record, name, "functions")
    functions = tuple(dict.fromkeys(request.functions))

    def shared(present: FunctionShareRecord | None) -> FunctionShareRecord:
        share = present or FunctionShareRecord(tenant=owner, app=app)
        grants = share.grants | {grantee: functions}
        if len(grants) > TENANTS_AT_MOST:
            raise Conflict(f"{app} is shared with {TENANTS_AT_MOST} tenants already: share it with everybody ('*').")
        share = msgspec.structs.replace(share, grants=grants)
        if grantee == EVERYBODY:
            _check_open(registry, record, share, _open(present, record))
        return share

    await registry.change_share(owner, app, shared)
    return FunctionShareInfo(grantee=grantee, functions=functions)


async def unshare_app(registry: RegistryPort, owner: str, app: str, grantee: str) -> None:
    """End a share; calls under way continue.

    Raises:
        NotFound: the app is not shared with `grantee`.
    """
    check_name(app, "app")

    def ended(present: FunctionShareRecord | None) -> FunctionShareRecord:
        if present is None or grantee not in present.grants:
            raise NotFound(f"The app {app} is not shared with {grantee[:100]}.")
        rest = {name: functions for name, functions in present.grants.items() if name != grantee}
        return msgspec.structs.replace(present, grants=rest)

    await registry.change_share(owner, app, ended)


async def shares_of(registry: RegistryPort, owner: str, app: str) -> list[FunctionShareInfo]:
    """The grantees of an app.

    Raises:
        NotFound: the owner has no such app.
    """
    await known_app(registry, owner, check_name(app, "app"))
    record = await registry.share(owner, app)
    grants = record.grants if record is not None else {}
    return [FunctionShareInfo(grantee=grantee, functions=functions) for grantee, functions in sorted(grants.items())]


def check_still_open(registry: RegistryPort, after: AppRecord) -> None:
    """Refuse a deploy that adds functions to an app that is shared with everybody, beyond the owner's limit.

    Raises:
        QuotaExceeded: names the limit.
    """
    share, before = registry.share_nowait(after.tenant, after.app), registry.app_nowait(after.tenant, after.app)
    if share is not None:
        _check_open(registry, after, share, _open(share, before))


def page_of_shared(
    registry: RegistryPort, tenant: str, *, everybody: bool = False, owner: str = "", after: str = "", limit: int = PAGE
) -> SharedFunctions:
    """The functions that `shared_with` has whose refs come `after` one, `limit` of them at most."""
    found = shared_with(registry, tenant, everybody=everybody, owner=owner)
    rest = [function for function in found if function.ref > after]
    return SharedFunctions(shared=tuple(rest[:limit]), next=rest[limit - 1].ref if len(rest) > limit else None)


def shared_with(
    registry: RegistryPort, tenant: str, *, everybody: bool = False, owner: str = ""
) -> list[SharedFunction]:
    """The functions of other tenants that are shared with `tenant` by name, or with `everybody` also those that are
    shared with everybody; only those of `owner`, if it is given."""
    return sorted(_shared_with(registry, tenant, owner, everybody=everybody), key=lambda function: function.ref)


def _shared_with(registry: RegistryPort, tenant: str, owner: str, *, everybody: bool) -> Iterator[SharedFunction]:
    for share in registry.shares():
        if share.tenant == tenant or owner not in ("", share.tenant):
            continue
        record = registry.app_nowait(share.tenant, share.app)
        if record is None or record.stopped:
            continue
        for function in record.named_functions:
            if share.opens(function, tenant) if everybody else share.names(function, tenant):
                ref = f"{share.tenant}:{share.app}.{function}"
                yield SharedFunction(
                    ref=ref,
                    owner=share.tenant,
                    app=share.app,
                    function=function,
                    endpoint=f"/v1/functions/{ref}/calls",
                )


def _check_open(registry: RegistryPort, record: AppRecord, share: FunctionShareRecord, before: int) -> None:
    """Refuse more functions of the app than the `before` that were shared with everybody, beyond the owner's limit."""
    if _open(share, record) <= before:
        return
    owner = record.tenant
    others = (app for app in registry.iter_apps(owner) if app.app != record.app)
    shares = ((registry.share_nowait(owner, app.app), app) for app in others)
    count = _open(share, record) + sum(_open(other, app) for other, app in shares)
    allowed = registry.limits(owner, "").tenant.open_functions
    how = "end a share with 'pilotlight app unshare', or share with tenants by their names"
    check_quota(owner, "open_functions", allowed, count, "functions that are shared with everybody", how)


def _open(share: FunctionShareRecord | None, record: AppRecord | None) -> int:
    """How many functions of an app are shared with everybody."""
    if share is None or record is None:
        return 0
    granted = share.grants.get(EVERYBODY)
    return 0 if granted is None else len(granted or record.named_functions)


def _check_other(owner: str, grantee: str) -> None:
    if grantee != EVERYBODY:
        check_name(grantee, "grantee")
    if grantee == owner:
        raise Conflict("The owner may call its own functions anyway.", field="grantee")
