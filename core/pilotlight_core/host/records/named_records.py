"""What stands of apps beside their deploys, such as rollouts; and weights, models, files of tenants."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pilotlight_core.host.records.registry_records import RegistryRecords
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.records.files import FileRecord
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord
from pilotlight_core.model.scaling.scale_record import ScaleRecord
from pilotlight_core.model.served.model_names import model_digest
from pilotlight_core.model.served.model_records import ModelRecord
from pilotlight_core.model.versions.pushed_weights import WeightsRecord


class NamedRecords:
    """The part of the registry whose records are read and changed one by one, by their names."""

    _records: RegistryRecords

    # -- people's word about sizes -------------------------------------------------------------------------------

    def scale_nowait(self, tenant: str, app: str, function: str) -> ScaleRecord | None:
        return self._records.get(f"scale.{tenant}.{app}.{function}", ScaleRecord)

    async def scale(self, tenant: str, app: str, function: str) -> ScaleRecord | None:
        """People's word about a function, from the bus."""
        return (await self._records.read(scale_key(tenant, app, function), ScaleRecord))[0]

    def scales(self) -> Iterator[ScaleRecord]:
        return self._records.each("scale.", ScaleRecord)

    async def change_scale(
        self, tenant: str, app: str, function: str, change: Callable[[ScaleRecord | None], ScaleRecord | None]
    ) -> ScaleRecord | None:
        return await self._records.change(scale_key(tenant, app, function), change)

    # -- rollouts -----------------------------------------------------------------------------------------------

    def rollout_nowait(self, tenant: str, app: str) -> RolloutRecord | None:
        return self._records.get(f"rollout.{tenant}.{app}", RolloutRecord)

    async def rollout(self, tenant: str, app: str) -> RolloutRecord | None:
        """An app's aliases and rollouts, from the bus."""
        return (await self._records.read(rollout_key(tenant, app), RolloutRecord))[0]

    def iter_rollouts(self) -> Iterator[RolloutRecord]:
        return self._records.each("rollout.", RolloutRecord)

    async def change_rollout(
        self, tenant: str, app: str, change: Callable[[RolloutRecord | None], RolloutRecord | None]
    ) -> RolloutRecord | None:
        """As any `change_…`; `change` counts `revision` up."""
        return await self._records.change(rollout_key(tenant, app), change)

    # -- weights ------------------------------------------------------------------------------------------------

    async def weights(self, tenant: str, name: str) -> WeightsRecord | None:
        """What is pushed under a name, from the bus."""
        return (await self._records.read(_weights_key(tenant, name), WeightsRecord))[0]

    def iter_weights(self, tenant: str) -> Iterator[WeightsRecord]:
        return self._records.each(f"weights.{tenant}.", WeightsRecord)

    async def change_weights(
        self, tenant: str, name: str, change: Callable[[WeightsRecord | None], WeightsRecord | None]
    ) -> WeightsRecord | None:
        return await self._records.change(_weights_key(tenant, name), change)

    # -- models -------------------------------------------------------------------------------------------------

    def model_nowait(self, tenant: str, name: str) -> ModelRecord | None:
        return self._records.get(_model_key(tenant, name), ModelRecord)

    async def model(self, tenant: str, name: str) -> ModelRecord | None:
        """Whose the name of a model is, from the bus if memory lacks it."""
        return await self._records.fetch(_model_key(tenant, name), ModelRecord)

    def iter_models(self, tenant: str) -> Iterator[ModelRecord]:
        return self._records.each(f"model.{tenant}.", ModelRecord)

    async def change_model(
        self, tenant: str, name: str, change: Callable[[ModelRecord | None], ModelRecord | None]
    ) -> ModelRecord | None:
        return await self._records.change(_model_key(tenant, name), change)

    # -- files --------------------------------------------------------------------------------------------------

    async def file(self, tenant: str, file_id: str) -> FileRecord | None:
        """A file's record, from the bus."""
        return (await self._records.read(_file_key(tenant, file_id), FileRecord))[0]

    def iter_files(self, tenant: str) -> Iterator[FileRecord]:
        return self._records.each(f"file.{tenant}.", FileRecord)

    async def change_file(
        self, tenant: str, file_id: str, change: Callable[[FileRecord | None], FileRecord | None]
    ) -> FileRecord | None:
        return await self._records.change(_file_key(tenant, file_id), change)


def rollout_key(tenant: str, app: str) -> str:
    return f"rollout.{check_name(tenant, 'tenant')}.{check_name(app, 'app')}"


def scale_key(tenant: str, app: str, function: str) -> str:
    names = (check_name(tenant, "tenant"), check_name(app, "app"), check_name(function, "function"))
    return f"scale.{'.'.join(names)}"


def _weights_key(tenant: str, name: str) -> str:
    return f"weights.{check_name(tenant, 'tenant')}.{check_name(name, 'name')}"


def _file_key(tenant: str, file_id: str) -> str:
    return f"file.{check_name(tenant, 'tenant')}.{check_name(file_id, 'file')}"


def _model_key(tenant: str, name: str) -> str:
    return f"model.{check_name(tenant, 'tenant')}.{model_digest(name)}"
