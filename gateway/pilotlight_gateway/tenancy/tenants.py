"""Tenants, which the operator creates and changes. A tenant sees only itself."""

from __future__ import annotations

import msgspec

from pilotlight_core.host.blobs.blob_port import STORE_ID
from pilotlight_core.model.api.tenancy_api import TenantChange, TenantInfo, TenantRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.ids import NAME
from pilotlight_core.model.networks.network_targets import MOST_ALLOWED, targets_fault
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.guarantees import check_guarantees
from pilotlight_gateway.tenancy.registry_port import RegistryPort

RESERVED = ("operator", STORE_ID)
"""Names with another meaning in the ledger and in subjects, or beside the folders of tenants' blobs."""


async def visible_tenant(
    registry: RegistryPort, principal: Principal, name: str, *, to_change: bool = False
) -> TenantRecord:
    """A tenant, if it is the caller's own or the caller is an operator.

    Raises:
        NotFound: there is none, or the caller may not see it.
        Conflict: it is `to_change`, and was erased.
    """
    record = None
    if NAME.fullmatch(name) and (principal.operator or name == principal.tenant):
        record = registry.tenant_nowait(name) or await registry.tenant(name)
    if record is None:
        raise no_tenant(name)
    if to_change and record.erased_at:
        raise _is_erased(name)
    return record


def no_tenant(name: str) -> NotFound:
    return NotFound(f"There is no tenant {name[:100]}.")


def tenant_info(record: TenantRecord) -> TenantInfo:
    return msgspec.convert(record, TenantInfo, from_attributes=True)


async def create_tenant(registry: RegistryPort, request: TenantRequest, at: float, home: int) -> TenantRecord:
    """Create a tenant at the unix second `at`; `home` is the epoch of the future home of its limits.

    Raises:
        NotFound: there is no such tier.
        BadInput: its tier's guarantee is more than what is left of the fleet.
        Conflict: the name is taken or reserved.
    """
    if request.name in RESERVED:
        raise Conflict(f"The name {request.name} is reserved.", field="name")
    _check_tier(registry, request.tier)
    check_guarantees(registry, moves={request.name: request.tier})
    record = TenantRecord(name=request.name, created_at=at, tier=request.tier, weight=request.weight, home=home)

    def only_new(present: TenantRecord | None) -> TenantRecord:
        if present is not None and present.erased_at:
            raise Conflict(
                f"There was a tenant {request.name}, which was erased: the ledger has its lines under this name, which "
                "nobody else is given. Choose another one.",
                field="name",
            )
        if present is not None:
            raise Conflict(f"There is a tenant {request.name} already.")
        return record

    return await registry.change_tenant(request.name, only_new)


async def change_tenant(registry: RegistryPort, principal: Principal, name: str, change: TenantChange) -> TenantRecord:
    """Change the fields that `change` gives.

    Raises:
        NotFound: there is no such tenant or tier.
        BadInput: the tier's guarantee is more than what is left of the fleet, or `network` names no target.
        Conflict: an operator would disable the tenant of its own key, or it was erased.
    """
    given = {key: value for key, value in msgspec.structs.asdict(change).items() if value is not None}
    _check_tier(registry, change.tier)
    if not NAME.fullmatch(name):
        raise no_tenant(name)
    if change.network is not None and (why := targets_fault(change.network, MOST_ALLOWED)):
        raise BadInput(f"network: {why}.", field="network")
    if change.disabled and name == principal.tenant:
        raise Conflict("This would disable the key that asks for it: use an operator's key of another tenant.")
    if change.tier is not None and registry.tenant_nowait(name) is not None:
        check_guarantees(registry, moves={name: change.tier})

    def changed(present: TenantRecord | None) -> TenantRecord:
        if present is None:
            raise no_tenant(name)
        if present.erased_at:
            raise _is_erased(name)
        erasing = "" if change.disabled is False else present.erasing  # who enables it has thought better of it
        moved = present.moved or given.get("tier", present.tier) != present.tier
        return msgspec.structs.replace(present, moved=moved, erasing=erasing, **given)

    return await registry.change_tenant(name, changed)


def _is_erased(name: str) -> Conflict:
    return Conflict(f"The tenant {name} was erased: nothing of it can be set or made any more.")


def _check_tier(registry: RegistryPort, tier: str | None) -> None:
    if tier is not None and registry.tier(tier) is None:
        known = ", ".join(known.name for known in registry.tiers())
        raise NotFound(f"tier: there is no tier {tier}; there are {known}.", field="tier")
