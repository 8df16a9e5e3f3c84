"""The models of tenants: which names functions are served under, and which function a name is of.

A name is claimed before the deploy that serves it is written, and released after one that serves it no more. Neither
is one write with the deploy's: what a crash leaves in between is told apart from a name in use by what is deployed,
and anybody may take it over.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import UNSET
from msgspec.structs import replace

from pilotlight_core.model.errors import BadInput, QuotaExceeded, UnknownFunction
from pilotlight_core.model.ids import REF_PATTERN
from pilotlight_core.model.served.model_names import MOST_MODELS, adapter_name
from pilotlight_core.model.served.model_records import ModelRecord
from pilotlight_core.model.spec import AppRecord, FunctionSpec, VersionRecord, served_names
from pilotlight_core.model.suggestions import did_you_mean, nearest
from pilotlight_gateway.deploys.called_versions import GuessCount
from pilotlight_gateway.tenancy.registry_port import RegistryPort

CLAIM_S = 60.0
"""A deploy that has claimed a name is over after so many seconds; until then no other app takes it."""
LONGEST_NAME = 300
"""Characters of a model's name that are looked at: a name, an adapter's, or a ref."""
IS_REF = re.compile(REF_PATTERN)
LOOKUPS_AT_A_TIME = 8
"""Names that the mirror does not have may be new, so the bus is asked; guesses must not flood it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedModel:
    """What a name stands for."""

    name: str
    ref: str
    """Of its function."""
    adapter: str = ""
    parent: str = ""
    """The model that it is an adapter on; "": it is none."""
    created_at: float = 0.0


def adapters_of(spec: FunctionSpec) -> tuple[str, ...]:
    """The adapters that a function's engine has; each is a model too."""
    return () if spec.engine is UNSET else spec.engine.adapters


class ServedModels:
    """Finds and lists models, each among those of one tenant, and keeps who has which name."""

    def __init__(self, registry: RegistryPort) -> None:
        self._registry = registry
        self._lookups = asyncio.Semaphore(LOOKUPS_AT_A_TIME)

    # -- finding -------------------------------------------------------------------------------------------------

    async def find(self, tenant: str, name: str, guesses: GuessCount | None = None) -> ServedModel:
        """The model of a name, or of a ref, which need not be one that there is. `guesses` counts names of none.

        Raises:
            UnknownFunction: `model_not_found`. TooMuch: the tenant has named too many that there are not.
        """
        if len(name) > LONGEST_NAME:
            raise no_model(name[:LONGEST_NAME] + "…")
        if (at_hand := self.find_nowait(tenant, name)) is not None:
            return at_hand
        base, adapter = adapter_name(name)
        is_ref = IS_REF.fullmatch(name) is not None
        if guesses is not None and not is_ref:
            guesses.check_guess(tenant)
        for known in dict.fromkeys((name, base)):
            record = self._registry.model_nowait(tenant, known)
            if record is None and not is_ref:  # the bus is not asked for each call of a function by its ref
                record = await self._fetched(tenant, known)
            if record is not None and (found := await self._model_of(record, "" if known == name else adapter)):
                return found
        if is_ref:
            return ServedModel(name=name, ref=name)
        if guesses is not None:
            guesses.take_guess(tenant)
        raise self._unknown(tenant, name)

    def listed(self, tenant: str) -> list[ServedModel]:
        """A tenant's models, by name, each with its adapters."""
        found: list[ServedModel] = []
        for record in self._registry.iter_models(tenant):
            version = self._serving(record)
            if version is not None:
                found += [_model(record, adapter) for adapter in ("", *adapters_of(version.spec))]
        return sorted(found, key=lambda model: model.name)

    def find_nowait(self, tenant: str, name: str) -> ServedModel | None:
        """As `find`, if memory has it: calls of adapters must not wait for guesses, of which the bus is asked."""
        base, adapter = adapter_name(name)
        if (record := self._registry.model_nowait(tenant, name)) is not None:
            adapter = ""
        elif (record := self._registry.model_nowait(tenant, base)) is None:
            return None
        version = self._serving(record)
        if version is None or (adapter and adapter not in adapters_of(version.spec)):
            return None
        return _model(record, adapter)

    async def _fetched(self, tenant: str, name: str) -> ModelRecord | None:
        async with self._lookups:
            return await self._registry.model(tenant, name)

    async def _model_of(self, record: ModelRecord, adapter: str) -> ServedModel | None:
        version = self._serving(record) or await self._newly_serving(record)
        if version is None or (adapter and adapter not in adapters_of(version.spec)):
            return None
        return _model(record, adapter)

    def _serving(self, record: ModelRecord) -> VersionRecord | None:
        """What is deployed of a record's function, if it is served under the record's name."""
        app = self._registry.app_nowait(record.tenant, record.app)
        if app is None or app.stopped or app.ends_at:
            return None
        version = self._registry.version(app.functions.get(record.function, ""))
        return version if version is not None and record.name in served_names(version.spec) else None

    async def _newly_serving(self, record: ModelRecord) -> VersionRecord | None:
        """As `_serving`, of what the bus has: the deploy may be newer than what is in memory."""
        async with self._lookups:
            app = await self._registry.app(record.tenant, record.app)
            if app is not None and record.function in app.functions:
                await self._registry.fetch_version(app.functions[record.function])
        return self._serving(record)

    def _unknown(self, tenant: str, name: str) -> UnknownFunction:
        known = [model.name for model in self.listed(tenant)]
        return no_model(name, did_you_mean(nearest(name, known)))

    # -- deploying -----------------------------------------------------------------------------------------------

    async def claim(self, tenant: str, app: str, specs: Mapping[str, FunctionSpec], at: float) -> None:
        """Claim the names of the functions of an app for them; `at` is unix seconds.

        Raises:
            BadInput: a name is another function's. QuotaExceeded: there are too many.
        """
        wanted: dict[str, str] = {}
        for function, spec in specs.items():
            for name in served_names(spec):
                if name in wanted:
                    raise BadInput(f"{function}: serves: {name} is the name of {wanted[name]} too.", field="serves")
                wanted[name] = function
        if wanted and len({model.name for model in self._registry.iter_models(tenant)} | wanted.keys()) > MOST_MODELS:
            raise QuotaExceeded(f"{tenant} has {MOST_MODELS} names of models, which is the most: deploy without some.")
        for name, function in wanted.items():
            claimed = ModelRecord(tenant=tenant, name=name, app=app, function=function, created_at=at, claimed_at=at)
            await self._claim(claimed)

    async def _claim(self, wanted: ModelRecord) -> None:
        def changed(held: ModelRecord | None) -> ModelRecord:
            if held is None:
                return wanted
            if held.ref == wanted.ref:
                return replace(held, claimed_at=wanted.claimed_at)
            # Within an app one deploy decides, which renames functions as well.
            is_young = wanted.claimed_at - held.claimed_at < CLAIM_S
            if held.app != wanted.app and (is_young or self._serving(held) is not None):
                raise BadInput(
                    f"{wanted.function}: serves: {wanted.name} is the name of {held.ref}: take another one, or deploy "
                    f"{held.app} without it first.",
                    field="serves",
                )
            return wanted

        await self._registry.change_model(wanted.tenant, wanted.name, changed)

    async def release(self, app: AppRecord, specs: Mapping[str, FunctionSpec], at: float) -> None:
        """Give back the names of an app that no function of it is served under after a deploy of the unix second `at`.

        What a later deploy has claimed meanwhile stays.
        """

        def changed(held: ModelRecord | None) -> ModelRecord | None:
            return None if held is None or (held.app == app.app and held.claimed_at <= at) else held

        kept = {name for spec in specs.values() for name in served_names(spec)}
        for model in [one for one in self._registry.iter_models(app.tenant) if one.app == app.app]:
            if model.name not in kept:
                await self._registry.change_model(model.tenant, model.name, changed)


def no_model(name: str, hint: str = "") -> UnknownFunction:
    """The error for a model that a tenant does not have: the same whether another one has it."""
    return UnknownFunction(f"There is no model {name!r}.{hint}", code="model_not_found", field="model")


def _model(record: ModelRecord, adapter: str) -> ServedModel:
    named = f"{record.name}:{adapter}" if adapter else record.name
    parent = record.name if adapter else ""
    return ServedModel(name=named, ref=record.ref, adapter=adapter, parent=parent, created_at=record.created_at)
