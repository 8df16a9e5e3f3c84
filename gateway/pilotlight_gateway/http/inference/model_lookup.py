"""Which function and method a model's name stands for: the one place where fronts ask."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from pilotlight_core.model.errors import BadInput, UnknownFunction
from pilotlight_core.model.spec import MethodSpec, Mode, VersionRecord
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.deploys.served_models import ServedModels
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.tensors.model_names import ModelName, read_model


class FoundModel(NamedTuple):
    """A model of a tenant."""

    name: str
    """As the client names it."""
    version: VersionRecord
    """With its schemas."""
    method: MethodSpec

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

    def __init__(self, resolver: Resolver, schemas: VersionSchemas, served: ServedModels | None = None) -> None:
        """`served` knows the names under which functions are served; None: there are none."""
        self._resolver = resolver
        self._schemas = schemas
        self._served = served

    async def find(self, tenant: str, name: str, version: str = "") -> FoundModel:
        """The model that `tenant` calls `name`: `app.function`, `app.Class.method`, or a name that a function serves.

        Raises:
            UnknownFunction: there is none, or it is no name of a model. BlobsDown: its schemas cannot be read.
        """
        try:
            asked = read_model(name, version)
            record = await self._version_of(tenant, asked, "" if version else name)
            found = await self._schemas.whole(record)
            return FoundModel(name.partition("@")[0], found, found.spec.method(asked.method))
        except BadInput as error:
            raise UnknownFunction(f"There is no model {name[:100]!r}: {error.detail}") from None

    async def _version_of(self, tenant: str, asked: ModelName, name: str) -> VersionRecord:
        """What is in memory goes first: a name that is none there may be served, or new."""
        with suppress(BadInput, UnknownFunction):
            if (found := self._resolver.resolve_nowait(tenant, asked.ref)) is not None:
                return found
        if name and self._served is not None:
            with suppress(UnknownFunction):
                served = await self._served.find(tenant, name)
                if served.adapter:
                    raise BadInput(
                        f"it is an adapter, which this API has no way to ask for: call {served.parent} with the input "
                        f'adapter="{served.adapter}", or POST /v1/chat/completions.'
                    )
                if served.ref != name:
                    return await self._resolver.resolve(tenant, served.ref)
        return await self._resolver.resolve(tenant, asked.ref)
