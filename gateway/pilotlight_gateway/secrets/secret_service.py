"""Secrets of a tenant: set, listed and removed. No answer has a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import structlog
from msgspec.structs import replace

from pilotlight_core.model.api.secret_api import SecretInfo
from pilotlight_core.model.errors import BadInput, Conflict, NotFound, QuotaExceeded, Unavailable
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.secrets.secret_uses import secrets_named
from pilotlight_core.model.secrets.secret_values import value_fault
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_gateway.secrets.data_key_store import DataKeyErased
from pilotlight_gateway.secrets.platform_keys import NoPlatformKey, PlatformKeyDown
from pilotlight_gateway.secrets.secret_records import SecretRecord
from pilotlight_gateway.secrets.secret_store import SecretStore
from pilotlight_gateway.secrets.tenant_vault import TenantVault
from pilotlight_gateway.tenancy.registry_port import RegistryPort

MOST_OF_TENANT = 100
"""Every gateway has them in memory, sealed."""
NO_KEY = "The key that seals secrets cannot be used now, so none can be set; the gateway's log says why."

log = structlog.get_logger(__name__)


async def set_secret(vault: TenantVault, tenant: str, name: str, value: str, *, by: str, at: float) -> SecretRecord:
    """Set the value of a secret, which is made if there is none. `at` is a unix second.

    Raises:
        BadInput: the name or the value is none. QuotaExceeded: the tenant has too many.
        Unavailable: the platform's key cannot be used now. Conflict.
    """
    store = vault.store
    check_name(name, "name")
    if why := value_fault(value):
        raise BadInput(f"The value of {name} is not taken: {why}.", field="value")
    if store.secret_nowait(tenant, name) is None and len(store.secrets(tenant)) >= MOST_OF_TENANT:
        raise _too_many(tenant)
    try:
        data_key, sealed = await vault.seal(tenant, name, value, at)
    except DataKeyErased as error:
        raise Conflict(str(error)) from None
    except (NoPlatformKey, PlatformKeyDown) as error:
        # Why is for operators: it has paths, and names of keys.
        log.error("a secret cannot be set", why=str(error))
        retry_after = 5.0 if isinstance(error, PlatformKeyDown) else None
        raise Unavailable(NO_KEY, code="misconfigured", retry_after=retry_after) from None

    def changed(present: SecretRecord | None) -> SecretRecord:
        fresh = SecretRecord(
            tenant=tenant, name=name, number=1, created_at=at, changed_at=at, changed_by=by, data_key=data_key,
            sealed=sealed,
        )  # fmt: skip
        return fresh if present is None else replace(fresh, number=present.number + 1, created_at=present.created_at)

    record = await store.change_secret(tenant, name, changed)
    assert record is not None  # noqa: S101 - `changed` removes none
    if record.number == 1 and len(await store.names(tenant, name)) > MOST_OF_TENANT:
        # Others were set at the same time. Whoever sees too many takes its own back, so that there never are.
        await store.change_secret(tenant, name, lambda present: None if present == record else present)
        raise _too_many(tenant)
    return record


def _too_many(tenant: str) -> QuotaExceeded:
    return QuotaExceeded(f"{tenant} has {MOST_OF_TENANT} secrets, which is the most. Remove some.")


def list_secrets(store: SecretStore, registry: RegistryPort, tenant: str, at: float) -> list[SecretInfo]:
    """All secrets of a tenant, by name, with the functions in service at the unix second `at` that use them."""
    return [secret_info(record, registry, at) for record in store.secrets(tenant)]


def secret_info(record: SecretRecord, registry: RegistryPort, at: float) -> SecretInfo:
    """What is shown of a secret."""
    return SecretInfo(
        name=record.name,
        number=record.number,
        created_at=record.created_at,
        changed_at=record.changed_at,
        changed_by=record.changed_by,
        functions=sorted(functions_using(registry, record.tenant, record.name, at)),
    )


async def remove_secret(store: SecretStore, registry: RegistryPort, tenant: str, name: str, at: float) -> None:
    """Remove a secret that no function in service uses at the unix second `at`.

    Raises:
        NotFound: there is none. Conflict: functions use it.
    """
    check_name(name, "name")
    if users := sorted(functions_using(registry, tenant, name, at)):
        raise Conflict(
            f"{name} is used by {', '.join(users)}: deploy without it, or stop the app, and remove it then. To make a "
            f"value that has leaked worthless, revoke it where it is from and set a new one."
        )

    def removed(present: SecretRecord | None) -> None:
        if present is None:
            raise NotFound(f"There is no secret {name}.")

    await store.change_secret(tenant, name, removed)


def functions_using(registry: RegistryPort, tenant: str, name: str, at: float) -> Iterator[str]:
    """`app.function` of those in service at the unix second `at` whose version names a secret."""
    for app in registry.iter_apps(tenant):
        if app.stopped or app.has_ended(at):
            continue
        for function, version_id in app.named_functions.items():
            version = registry.version(version_id)
            if version is not None and name in secrets_named(version.spec):
                yield f"{app.app}.{function}"


async def check_secrets_set(store: SecretStore, tenant: str, specs: Iterable[FunctionSpec]) -> None:
    """Refuse functions that use a secret which the tenant does not have.

    Raises:
        BadInput: naming them, and what to do.
    """
    for spec in specs:
        missing = [name for name in secrets_named(spec) if await _is_missing(store, tenant, name)]
        if missing:
            commands = ", ".join(f"`pilotlight secret set {name}`" for name in missing)
            raise BadInput(
                f"{spec.name}: there is no secret {', '.join(missing)}: run {commands}, then deploy again.",
                field="secrets",
            )


async def _is_missing(store: SecretStore, tenant: str, name: str) -> bool:
    # It may have been set a moment ago, through another gateway.
    return store.secret_nowait(tenant, name) is None and await store.secret(tenant, name) is None
