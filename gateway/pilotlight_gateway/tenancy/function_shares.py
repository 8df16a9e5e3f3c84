"""Functions that other tenants may call: the caller pays, the owner has the logs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pilotlight_core.model.api.tenancy_api import FunctionShareInfo, FunctionShareRequest, SharedFunction
from pilotlight_core.model.errors import Conflict, NotFound
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import AppRecord
from pilotlight_core.model.tenancy import EVERYBODY, FunctionShareRecord
from pilotlight_gateway.tenancy.name_hints import check_function, known_app
from pilotlight_gateway.tenancy.registry_port import RegistryPort

TENANTS_AT_MOST = 1_000
"""Named grantees of one app."""


async def share_app(
    registry: RegistryPort, owner: str, app: str, grantee: str, request: FunctionShareRequest
) -> FunctionShareInfo:
    """Let `grantee` ("*": everybody) call functions of an app. Whether it exists is not disclosed.

    Raises:
        NotFound: the owner has no such app, or the app no such function.
        BadInput: `grantee` is not a name.
        Conflict: the app has too many grantees, or `grantee` is the owner.
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
        return msgspec.structs.replace(share, grants=grants)

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


def shared_with(registry: RegistryPort, tenant: str) -> list[SharedFunction]:
    """The functions of other tenants that `tenant` may call."""
    return sorted(_shared_with(registry, tenant), key=lambda function: function.ref)


def _shared_with(registry: RegistryPort, tenant: str) -> Iterator[SharedFunction]:
    for share in registry.shares():
        record = registry.app_nowait(share.tenant, share.app)
        if share.tenant == tenant or record is None or record.stopped:
            continue
        for function in _deployed(record):
            if share.opens(function, tenant):
                ref = f"{share.tenant}:{share.app}.{function}"
                yield SharedFunction(
                    ref=ref,
                    owner=share.tenant,
                    app=share.app,
                    function=function,
                    endpoint=f"/v1/functions/{ref}/calls",
                )


def _deployed(record: AppRecord) -> Iterator[str]:
    return iter(record.functions)


def _check_other(owner: str, grantee: str) -> None:
    if grantee != EVERYBODY:
        check_name(grantee, "grantee")
    if grantee == owner:
        raise Conflict("The owner may call its own functions anyway.", field="grantee")
