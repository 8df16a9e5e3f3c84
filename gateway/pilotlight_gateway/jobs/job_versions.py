"""Which version runs a job's next start: one that it named, or what its function has by then.

A queue may be hours long, and must not hold a version that was rolled back: a job that named none is resolved when it
starts, as a call is. It stays with the version that it was accepted for where what is there now takes other arguments,
and with the old version of a rollout once the new one has failed it.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from pilotlight_core.model.errors import BadInput, NotFound
from pilotlight_core.model.records.jobs import FailurePoint, JobRecord
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_core.model.rollouts.split import Side
from pilotlight_core.model.rollouts.split_units import SplitAsker
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.schedules.tick_jobs import owner_of
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.splits.splits import NAMED, UNKNOWN, Chosen, Splits
from pilotlight_gateway.tenancy.hook_versions import hook_versions
from pilotlight_gateway.tenancy.registry_port import RegistryPort

REPEATABLE = frozenset({"execution_timeout", "bad_output"})
"""Codes of starts that would fail again on the same version."""


@dataclass(frozen=True, kw_only=True)
class JobVersions:
    """Of one gateway, from the registry's mirror."""

    registry: RegistryPort
    schemas: VersionSchemas
    splits: Splits

    async def choose(self, job: JobRecord) -> Chosen:
        """The version of a job's next start.

        Raises:
            NotFound: it is deleted, or a hook of its class is. BlobsDown: its schemas cannot be read.
        """
        accepted = await self._kept(job.version)
        chosen = await self._now(job) if job.floats else None
        if chosen is None or (
            accepted is not None
            and chosen.version.id != accepted.id
            and not await self._takes_the_same(job, accepted, chosen.version)
        ):
            if accepted is None:
                raise NotFound(f"There is no version {job.version} any more.")
            chosen = Chosen(accepted, None, NAMED)
        await hook_versions(self.registry, chosen.version)
        return chosen

    async def _kept(self, version_id: str) -> VersionRecord | None:
        return self.registry.version(version_id) or await self.registry.fetch_version(version_id)

    async def _now(self, job: JobRecord) -> Chosen | None:
        """What a call would be run by; None: the function is not deployed."""
        tenant, app = owner_of(job)
        record, function = self.registry.app_nowait(tenant, app), job.function.rpartition(".")[2]
        deployed = record.functions.get(function) if record is not None and not record.stopped else None
        control = await self._kept(deployed) if deployed is not None else None
        if control is None:
            return None
        rollouts = self.registry.rollout_nowait(tenant, app)
        if rollouts is None:
            return Chosen(control, None, UNKNOWN)
        if job.stays:
            return Chosen(control, None, rollouts.revision)
        return self.splits.choose(rollouts, control, SplitAsker(job.tenant, job.key_id, job.id, sticky=job.sticky))

    async def _takes_the_same(self, job: JobRecord, accepted: VersionRecord, now: VersionRecord) -> bool:
        """Whether a job's arguments, which were read for one version, are as good for another."""
        try:
            before = await self.schemas.method(accepted, job.method)
            after = await self.schemas.method(now, job.method)
        except BadInput:
            return False
        return (before.input_schema, before.mode) == (after.input_schema, after.mode)


def bound_to(job: JobRecord, version: VersionRecord) -> JobRecord:
    """The job whose next start another version runs, by what that one says of its tries."""
    spec = version.spec
    return msgspec.structs.replace(
        job, version=version.id, ref=version.ref, retries=spec.retries, idempotent=spec.idempotent, timeout=spec.timeout
    )


def point_beside(point: FailurePoint, code: str, job: JobRecord, side: Side | None) -> FailurePoint:
    """Where a try failed, seen from the old version of a rollout, which may still run what the new one could not."""
    if side is None or side.arm is not Arm.CANARY or point is not FailurePoint.FINAL:
        return point
    if code == "load_failed":
        return FailurePoint.NOT_STARTED
    return FailurePoint.INTERRUPTED if code in REPEATABLE and job.idempotent else point
