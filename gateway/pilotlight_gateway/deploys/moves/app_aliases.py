"""Aliases of an app's functions: words for versions, which callers write as `app.function@prod`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pilotlight_core.model.api.rollouts.alias_api import AliasInfo
from pilotlight_core.model.errors import BadInput, NotFound, UnknownFunction
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.rollouts.alias_names import check_alias
from pilotlight_core.model.rollouts.rollout_moves import with_alias, without_alias
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord
from pilotlight_core.model.spec import AppRecord
from pilotlight_gateway.deploys.app_records import version_name
from pilotlight_gateway.tenancy.name_hints import check_function, known_app
from pilotlight_gateway.tenancy.registry_port import RegistryPort

NUMBER = re.compile(r"v([1-9][0-9]{0,8})")


@dataclass(frozen=True, kw_only=True)
class AppAliases:
    """Of all apps; each call is of one tenant's."""

    registry: RegistryPort

    async def put(self, tenant: str, app: str, function: str, alias: str, version: str) -> AliasInfo:
        """Let an alias stand for a version, `v7` or an id; callers that name it get that from now on.

        Raises:
            NotFound: there is no such app. UnknownFunction: no such function, or version (`unknown_version`).
            BadInput: an alias cannot be called so, or there are too many.
        """
        check_alias(alias)
        record = await known_app(self.registry, tenant, app)
        check_function(record, function, "function")
        wanted = version_of(record, function, version)

        def changed(held: RolloutRecord | None) -> RolloutRecord:
            return with_alias(held, tenant, app, function, alias, wanted)

        after = await self.registry.change_rollout(tenant, app, changed)
        return alias_info(record, after, function, alias, wanted)

    async def find(self, tenant: str, app: str, function: str, alias: str) -> AliasInfo:
        """Raises NotFound: there is no such app or alias."""
        record = await known_app(self.registry, tenant, app)
        held = await self.registry.rollout(tenant, app)
        if held is None or (version := held.alias(function, alias)) is None:
            raise no_alias(app, function, alias)
        return alias_info(record, held, function, alias, version)

    async def list(self, tenant: str, app: str) -> list[AliasInfo]:
        """Of all of an app's functions, by their names. Raises NotFound: there is no such app."""
        record = await known_app(self.registry, tenant, app)
        held = await self.registry.rollout(tenant, app)
        return [
            alias_info(record, held, function, alias, version)
            for function, aliases in sorted(held.aliases.items() if held is not None else ())
            for alias, version in sorted(aliases.items())
        ]

    async def delete(self, tenant: str, app: str, function: str, alias: str) -> None:
        """Raises NotFound: there is no such app or alias."""
        await self.find(tenant, app, function, alias)

        def changed(held: RolloutRecord | None) -> RolloutRecord | None:
            return without_alias(held, function, alias) if held is not None else None

        await self.registry.change_rollout(tenant, app, changed)


def version_of(record: AppRecord, function: str, text: str) -> str:
    """The id of a version that is kept of a function: `v7`, or its id.

    Raises:
        BadInput: it is neither. UnknownFunction: there is none (`unknown_version`).
    """
    if (number := NUMBER.fullmatch(text)) is not None:
        found = record.version_at(function, int(number[1]))
    elif text.startswith("ver_"):
        found = text if record.number_of(function, text) is not None else None
    else:
        raise BadInput(f"version: expected v7 or a version's id, not {text[:60]!r}.", field="version")
    if found is None:
        newest = record.newest_number(function)
        raise UnknownFunction(
            f"{record.app}.{function} has no version {text[:60]}: the newest is v{newest}.",
            code="unknown_version",
            field="version",
        )
    return found


def alias_info(record: AppRecord, held: RolloutRecord | None, function: str, alias: str, version: str) -> AliasInfo:
    return AliasInfo(
        function=function,
        alias=alias,
        ref=f"{record.app}.{function}@{alias}",
        version=version_name(record, function, version),
        version_id=version,
        withdrawn=held is not None and version in held.withdrawn,
    )


def no_alias(app: str, function: str, alias: str) -> NotFound:
    return NotFound(f"{check_name(app, 'app')}.{check_name(function, 'function')} has no alias {alias[:60]!r}.")
