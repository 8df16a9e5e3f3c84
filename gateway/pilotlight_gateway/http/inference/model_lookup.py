"""Which function and method a model's name stands for: the one place where fronts ask."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from msgspec import UNSET

from pilotlight_core.model.engines.engine_spec import GENERATE
from pilotlight_core.model.errors import BadInput, UnknownFunction
from pilotlight_core.model.spec import FunctionSpec, MethodSpec, Mode, VersionRecord
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.deploys.served_models import ServedModel, ServedModels
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.tensors.model_names import ModelName, read_model


class FoundModel(NamedTuple):
    """A model of a tenant."""

    name: str
    """As the client names it."""
    version: VersionRecord
    """With its schemas."""
    method: MethodSpec
    adapter: str = ""
    """That it is on another model; "": it is none."""
    asked: str = ""
    """The ref that it was found by, with its version if it names one; "": that of the version."""

    @property
    def ref(self) -> str:
        return self.asked or self.version.ref

    @property
    def number(self) -> str:
        """The version, as the protocol names it."""
        return str(self.version.number)

    @property
    def streams(self) -> bool:
        """Whether it answers more than once."""
        return self.method.mode is Mode.GENERATOR


class ModelLookup:
    """Finds models for callers."""

    def __init__(
        self,
        resolver: Resolver,
        schemas: VersionSchemas,
        served: ServedModels | None = None,
        rates: ApiRates | None = None,
    ) -> None:
        """`served` knows the names under which functions are served; None: there are none. `rates` count names of
        none.
        """
        self._resolver = resolver
        self._schemas = schemas
        self._served = served
        self._rates = rates

    async def find(self, tenant: str, name: str, version: str = "") -> FoundModel:
        """The model that `tenant` calls `name`: `app.function`, `app.Class.method`, or a name that a function serves.

        Raises:
            UnknownFunction: there is none, or it is no name of a model. BlobsDown: its schemas cannot be read.
            TooMuch: the tenant has named too many that there are not.
        """
        try:
            return await self._find(tenant, name, version)
        except UnknownFunction:
            if self._rates is not None:
                self._rates.take_guess(tenant)
            raise

    async def _find(self, tenant: str, name: str, version: str) -> FoundModel:
        try:
            asked = read_model(name, version)
            record, served = await self._version_of(tenant, asked, "" if version else name)
            found = await self._schemas.whole(record)
            method = found.spec.method(_method_called(found.spec, None if served is not None else asked.method))
            adapter, ref = (served.adapter, served.ref) if served is not None else ("", asked.ref)
            return FoundModel(name.partition("@")[0], found, method, adapter, ref)
        except BadInput as error:
            raise UnknownFunction(f"There is no model {name[:100]!r}: {error.detail}") from None

    async def _version_of(self, tenant: str, asked: ModelName, name: str) -> tuple[VersionRecord, ServedModel | None]:
        """The version, and the model if it is a function's by a name that it serves.

        What is in memory goes first: a name that is none there may be served, or new.
        """
        with suppress(BadInput, UnknownFunction):
            if (found := self._resolver.resolve_nowait(tenant, asked.ref)) is not None:
                return found, None
        served = await self._served_as(tenant, name)
        if served is not None and served.ref != name:
            with suppress(UnknownFunction):
                return await self._resolver.resolve(tenant, served.ref), served
        return await self._resolver.resolve(tenant, asked.ref), None

    async def _served_as(self, tenant: str, name: str) -> ServedModel | None:
        """The model that is served under a name; the bus is asked for what is not in memory, unless guesses are."""
        served = self._served if name else None
        if served is not None and (at_hand := served.find_nowait(tenant, name)) is not None:
            return at_hand
        if self._rates is not None:
            self._rates.check_guess(tenant)
        if served is not None:
            with suppress(UnknownFunction):
                return await served.find(tenant, name)
        return None


def _method_called(spec: FunctionSpec, named: str | None) -> str | None:
    """The method that is called; None: the only one. Of an engine it is the one that generates, unless one is named."""
    return named or (GENERATE if spec.engine is not UNSET else None)
