"""Which function and method a model's name stands for: the one place where fronts ask."""

from __future__ import annotations

from typing import NamedTuple

from pilotlight_core.model.spec import MethodSpec, Mode, VersionRecord
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.tensors.model_names import read_model


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

    def __init__(self, resolver: Resolver, schemas: VersionSchemas) -> None:
        self._resolver = resolver
        self._schemas = schemas

    async def find(self, tenant: str, name: str, version: str = "") -> FoundModel:
        """The model that `tenant` calls `name`: `app.function`, or `app.Class.method`.

        Names under which functions are served belong here: whatever is no such ref is looked up among them.

        Raises:
            BadInput: it is no name of a model. UnknownFunction: there is none. BlobsDown: its schemas cannot be read.
        """
        asked = read_model(name, version)
        found = await self._schemas.whole(await self._resolver.resolve(tenant, asked.ref))
        return FoundModel(name.partition("@")[0], found, found.spec.method(asked.method))
