"""Finds the version that a ref names."""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache

import msgspec

from pilotlight_core.host.steady_clock import run_time
from pilotlight_core.model.errors import UnknownFunction
from pilotlight_core.model.ids import Ref, parse_ref
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.tenancy import FunctionShareRecord
from pilotlight_gateway.tenancy.function_shares import shared_with
from pilotlight_gateway.tenancy.name_hints import no_function
from pilotlight_gateway.tenancy.registry_port import RegistryPort

VERSION_ID = re.compile(r"ver_[0-9a-f]{32}")
read_ref = lru_cache(8_192)(parse_ref)
LOOKUPS_AT_A_TIME = 8
"""Shares that the mirror does not have may be new, so the bus is asked; guesses must not flood it."""


class Resolver:
    """Finds versions for callers, if possible in memory."""

    def __init__(self, registry: RegistryPort) -> None:
        self._registry = registry
        self._lookups = asyncio.Semaphore(LOOKUPS_AT_A_TIME)

    async def resolve(self, tenant: str, text: str) -> VersionRecord:
        """The version that the ref `text` names for `tenant`, among its own functions and those shared with it.

        Its schemas may be apart: `VersionSchemas` reads them.

        Raises:
            BadInput: `text` is no ref.
            UnknownFunction: there is none (`unknown_version`: only the pin is unknown).
        """
        if (found := self.resolve_nowait(tenant, text)) is not None:
            return found
        ref: Ref = read_ref(text)
        owner = ref.tenant or tenant
        if owner != tenant and not await self._shared(owner, ref, tenant):
            raise self._unknown(tenant, ref)
        app = self._registry.app_nowait(owner, ref.app) or await self._registry.app(owner, ref.app)
        if app is None or ref.function not in app.versions:
            raise self._unknown(tenant, ref)
        rollouts = await self._registry.rollout(owner, ref.app) if is_alias(ref) else None
        wanted = version_wanted(app, ref, rollouts)
        version = self._registry.version(wanted) or await self._registry.fetch_version(wanted)
        return self._checked(version, wanted, app, ref, text, tenant)

    def resolve_nowait(self, tenant: str, text: str) -> VersionRecord | None:
        """As `resolve`, if everything is in memory; else None.

        Raises:
            As `resolve`.
        """
        ref: Ref = read_ref(text)
        owner = ref.tenant or tenant
        if owner != tenant and not self._shared_nowait(owner, ref, tenant):
            return None
        app = self._registry.app_nowait(owner, ref.app)
        if app is None or ref.function not in app.versions:
            return None
        rollouts = self._registry.rollout_nowait(owner, ref.app) if is_alias(ref) else None
        if rollouts is None and is_alias(ref):
            return None
        wanted = version_wanted(app, ref, rollouts)
        version = self._registry.version(wanted)
        return self._checked(version, wanted, app, ref, text, tenant) if version is not None else None

    @staticmethod
    def _checked(
        version: VersionRecord | None, wanted: str, app: AppRecord, ref: Ref, text: str, tenant: str
    ) -> VersionRecord:
        owner = ref.tenant or tenant
        if version is None or (version.tenant, version.app, version.function) != (owner, ref.app, ref.function):
            raise UnknownFunction(f"There is no function {text}.", code="unknown_version")
        number = app.number_of(ref.function, wanted)
        if number is None:
            # A trial was not deployed: only its owner may call it, by its id.
            if owner != tenant or not version.spec.placing.slice:
                raise UnknownFunction(f"There is no function {text}.", code="unknown_version")
            return version
        if version.number != number:
            # Two deploys of the same content raced: the app's record decides what it is called.
            version = msgspec.structs.replace(version, number=number)
        return version

    def _unknown(self, tenant: str, ref: Ref) -> UnknownFunction:
        # Of others only what its owner shares: a list of everybody's would be made for each misspelt name.
        shared = shared_with(self._registry, tenant, everybody=True, owner=ref.tenant) if ref.tenant else []
        return no_function(self._registry, tenant, ref, (one.ref for one in shared))

    async def _shared(self, owner: str, ref: Ref, tenant: str) -> bool:
        """Whether `owner` shares the function with `tenant`. A no takes equally long for every reason."""
        if self._shared_nowait(owner, ref, tenant):
            return True
        share = self._registry.share_nowait(owner, ref.app)
        if share is None or not share.opens(ref.function, tenant):
            async with self._lookups:
                share = await self._registry.share(owner, ref.app)
        return self._opens(share, owner, ref, tenant)

    def _shared_nowait(self, owner: str, ref: Ref, tenant: str) -> bool:
        """Whether it is shared as far as the mirror knows."""
        return self._opens(self._registry.share_nowait(owner, ref.app), owner, ref, tenant)

    def _opens(self, share: FunctionShareRecord | None, owner: str, ref: Ref, tenant: str) -> bool:
        record = self._registry.tenant_nowait(owner)
        open_ = share is not None and share.opens(ref.function, tenant)
        return open_ and record is not None and not record.disabled


def is_alias(ref: Ref) -> bool:
    """Whether the pin of a ref is an alias: neither a version's id nor its number."""
    return ref.pin is not None and ref.version_number is None and VERSION_ID.fullmatch(ref.pin) is None


def version_wanted(record: AppRecord | None, ref: Ref, rollouts: RolloutRecord | None = None) -> str:
    """The id of the version that a ref names; without a pin the deployed one. `rollouts` has the aliases.

    A pin that is a version's id is returned unchecked.

    Raises:
        UnknownFunction: there is none (`unknown_version`: only the pin is unknown).
    """
    function, pin = ref.function, ref.pin
    if record is None or function not in record.versions:
        raise UnknownFunction(f"There is no function {ref.app}.{function}.")
    if record.ends_at and record.has_ended(run_time()):
        raise UnknownFunction(f"The run {ref.app} has ended.")
    if record.stopped:
        raise UnknownFunction(f"The app {ref.app} is stopped: deploy it again.")
    if pin is None:
        if function not in record.functions:
            raise UnknownFunction(f"{ref.app}.{function} is not deployed any more.")
        return record.functions[function]
    if VERSION_ID.fullmatch(pin):
        return pin
    if (number := ref.version_number) is not None:
        if (found := record.version_at(function, number)) is not None:
            return found
    elif rollouts is not None and (aliased := rollouts.alias(function, pin)) is not None:
        return aliased
    raise UnknownFunction(
        f"{ref.app}.{function} has no version {pin}: {_kept(record, rollouts, function)}.", code="unknown_version"
    )


def _kept(record: AppRecord, rollouts: RolloutRecord | None, function: str) -> str:
    """Which versions there are, for a refusal."""
    newest, gone = record.newest_number(function), record.forgotten.get(function, 0)
    kept = f"v{gone + 1} to v{newest} are kept" if gone else f"the newest is v{newest}"
    aliases = sorted(rollouts.aliases.get(function, ())) if rollouts is not None else []
    return f"{kept}, and its aliases are {', '.join(aliases)}" if aliases else kept
