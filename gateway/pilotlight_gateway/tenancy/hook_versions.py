"""The versions of the companions of a class with hooks."""

from __future__ import annotations

from msgspec import UNSET

from pilotlight_core.model.errors import UnknownFunction
from pilotlight_core.model.pipelines.pipeline import HookKind, companion_name
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.tenancy.registry_port import RegistryPort


async def hook_versions(registry: RegistryPort, version: VersionRecord) -> dict[HookKind, VersionRecord] | None:
    """The version of each hook of a class; None: it has none.

    Raises:
        UnknownFunction: one is deleted.
    """
    if version.spec.pipeline is UNSET:
        return None
    found: dict[HookKind, VersionRecord] = {}
    for kind, hook in version.spec.pipeline.hooks.items():
        record = registry.version(hook.version) or await registry.fetch_version(hook.version)
        if record is None or not _is_companion_of(record, version, kind):
            raise UnknownFunction(
                f"The @{kind}() hook of {version.ref} is not there any more: deploy again.", code="unknown_version"
            )
        found[kind] = record
    return found


def known_hooks(registry: RegistryPort, version: VersionRecord) -> dict[HookKind, VersionRecord] | None:
    """The same of what is in memory; None also if one is not."""
    if version.spec.pipeline is UNSET:
        return None
    found: dict[HookKind, VersionRecord] = {}
    for kind, hook in version.spec.pipeline.hooks.items():
        record = registry.version(hook.version)
        if record is None or not _is_companion_of(record, version, kind):
            return None
        found[kind] = record
    return found


def _is_companion_of(record: VersionRecord, version: VersionRecord, kind: HookKind) -> bool:
    name = version.tenant, version.app, companion_name(version.function, kind)
    return (record.tenant, record.app, record.function) == name
