"""Deletes versions that are not kept any more: older ones, those of deleted apps, and trials.

A version stays while its app's record has it, or that of the app's rollouts, a job or batch may still run it, or a
call of it may run. It also stays for an hour after it was stored, within which its app's record is written. A deploy
renews a version that it finds, so that a delete that was decided before fails. What runs the hooks of a class stays
for as long as the class does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import msgspec
import structlog

from pilotlight_core.bus import Bus, KeyConflict, KvEntry
from pilotlight_core.bus.streams import MARKER_TTL
from pilotlight_core.model.artifacts.evidence_info import EvidenceInfo
from pilotlight_core.model.records.files import FileRecord
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord
from pilotlight_core.model.spec import AppRecord
from pilotlight_core.model.subjects import BATCH_BUCKET, REGISTRY_BUCKET
from pilotlight_core.model.versions.pushed_weights import WeightsRecord

YOUNG_S = 3_600.0
TRIAL_S = 86_400.0
LONGEST_CALL_S = 86_400.0

log = structlog.get_logger(__name__)


class _Placing(msgspec.Struct, frozen=True):
    slice: str = ""


class _Hook(msgspec.Struct, frozen=True):
    version: str = ""


class _Pipeline(msgspec.Struct, frozen=True):
    preprocess: _Hook | None = None
    postprocess: _Hook | None = None


class _Spec(msgspec.Struct, frozen=True):
    timeout: float = LONGEST_CALL_S
    placing: _Placing = _Placing()
    pipeline: _Pipeline = _Pipeline()


class StoredVersion(msgspec.Struct, frozen=True, kw_only=True):
    """What the registry's record of a version says about how long it is needed."""

    id: str
    tenant: str
    app: str
    function: str
    created_at: float
    renewed_at: float = 0.0
    manifest_sha256: str = ""
    evidence: EvidenceInfo | None = None
    spec: _Spec = _Spec()

    @property
    def hooks(self) -> set[str]:
        """The versions that its calls run through beside it."""
        pipeline = self.spec.pipeline
        return {hook.version for hook in (pipeline.preprocess, pipeline.postprocess) if hook is not None}


class _Running(msgspec.Struct, frozen=True):
    """What a batch's record says about the version that it runs."""

    version: str
    ended_at: float = 0.0


_apps = msgspec.msgpack.Decoder(AppRecord)
_versions = msgspec.msgpack.Decoder(StoredVersion)
_batches = msgspec.msgpack.Decoder(_Running)
_files = msgspec.msgpack.Decoder(FileRecord)
_weights = msgspec.msgpack.Decoder(WeightsRecord)
_rollouts = msgspec.msgpack.Decoder(RolloutRecord)


def is_needed(version: StoredVersion, app: AppRecord | None, at: float, rollouts: RolloutRecord | None = None) -> bool:
    """Whether a version may be needed after the unix second `at`, but for jobs and batches.

    `app` is the record of its app, `rollouts` what stands of that app's rollouts.
    """
    since = at - max(version.created_at, version.renewed_at)
    if since < YOUNG_S or (version.spec.placing.slice and since < TRIAL_S):
        return True
    if app is None:
        return False
    if version.id in app.versions.get(version.function, ()) or version.id in app.functions.values():
        return True
    served_until = _served_until(version, app)
    if rollouts is not None:
        if version.id in rollouts.kept_versions():
            return True
        last = rollouts.rollout
        if last is not None and version.id in (*last.canary.values(), *last.twins.values()):
            served_until = max(served_until, last.since)
    return at - served_until < version.spec.timeout + YOUNG_S


def _served_until(version: StoredVersion, app: AppRecord) -> float:
    """The unix second at which another version took its place; long ago if the history does not say."""
    until = 0.0
    served = [line for line in app.history if line.traffic]
    for line, following in pairwise(served):
        if line.functions.get(version.function) == version.id:
            until = following.at
    return until


class VersionCollector:
    """Looks through the registry."""

    def __init__(self, bus: Bus) -> None:
        self._registry = bus.kv(REGISTRY_BUCKET)
        self._batches = bus.kv(BATCH_BUCKET)

    async def stored(self) -> dict[str, tuple[StoredVersion, int]]:
        """All versions by key, with their revisions. Raises BusError."""
        entries = (await self._registry.entries("version.")).items()
        return {key: (version, entry.revision) for key, entry in entries for version in _read(_versions, key, entry)}

    async def weights(self) -> list[WeightsRecord]:
        """What tenants have pushed. Raises BusError; DecodeError: a later release has written one."""
        entries = await self._registry.entries("weights.")
        return [_weights.decode(entry.value) for entry in entries.values()]

    async def files(self) -> list[FileRecord]:
        """What tenants have uploaded. Raises BusError; DecodeError: a later release has written one."""
        entries = await self._registry.entries("file.")
        return [_files.decode(entry.value) for entry in entries.values()]

    async def forget_files(self, at: float) -> None:
        """Delete the records of expired files, whose blobs are found as what nothing needs. Raises BusError."""
        for key, entry in (await self._registry.entries("file.")).items():
            for record in _read(_files, key, entry):
                if not record.is_kept(at):
                    with suppress(KeyConflict):
                        await self._registry.delete(key, entry.revision, ttl=MARKER_TTL)

    async def forget_weights(self, at: float) -> None:
        """Delete the records of which all was removed longer ago than anything needs it. Raises BusError."""
        for key, entry in (await self._registry.entries("weights.")).items():
            for record in _read(_weights, key, entry):
                if not record.kept_at(at):
                    with suppress(KeyConflict):  # it was pushed anew
                        await self._registry.delete(key, entry.revision, ttl=MARKER_TTL)

    async def collect(self, of_jobs: Collection[str], at: float) -> int:
        """Delete what is not needed at the unix second `at`; returns the number of versions.

        `of_jobs` are versions that jobs may run. Raises BusError.
        """
        await self.forget_weights(at)
        await self.forget_files(at)
        versions = await self.stored()
        records = [
            app for key, entry in (await self._registry.entries("app.")).items() for app in _read(_apps, key, entry)
        ]
        apps = {(app.tenant, app.app): app for app in records}
        rollouts, unread = await self._of_rollouts()
        dead = {
            key: (version, revision)
            for key, (version, revision) in versions.items()
            if version.id not in of_jobs
            and (app := (version.tenant, version.app)) not in unread
            and not is_needed(version, apps.get(app), at, rollouts.get(app))
        }
        used = await self._of_batches() if dead else set[str]()
        for key, (version, _) in versions.items():
            if key not in dead or version.id in used:
                used |= version.hooks
        deleted = 0
        for key, (version, revision) in dead.items():
            if version.id not in used and await self._delete(key, version.id, revision):
                deleted += 1
        if deleted:
            log.info("versions that are not kept any more were deleted", versions=deleted)
        return deleted

    async def _of_rollouts(self) -> tuple[dict[tuple[str, str], RolloutRecord], set[tuple[str, str]]]:
        """What stands of rollouts by tenant and app, and the apps of which a later release has written it."""
        found, unread = {}, set()
        for key, entry in (await self._registry.entries("rollout.")).items():
            _, tenant, app = key.split(".", 2)
            for record in _read(_rollouts, key, entry):
                found[tenant, app] = record
            if (tenant, app) not in found:
                unread.add((tenant, app))
        return found, unread

    async def _delete(self, key: str, version_id: str, revision: int) -> bool:
        try:
            await self._registry.delete(key, revision, ttl=MARKER_TTL)
        except KeyConflict:
            return False  # it was deployed anew
        for kind in ("curves", "verdict"):
            await self._registry.delete(f"{kind}.{version_id}", ttl=MARKER_TTL)
        return True

    async def _of_batches(self) -> set[str]:
        entries = (await self._batches.entries()).items()
        running = [record for key, entry in entries for record in _read(_batches, key, entry)]
        return {record.version for record in running if not record.ended_at}


def _read(decoder: msgspec.msgpack.Decoder[Any], key: str, entry: KvEntry) -> Iterator[Any]:
    """The record, unless it cannot be read."""
    try:
        yield decoder.decode(entry.value)
    except msgspec.DecodeError as error:
        log.warning("a record cannot be read", key=key, error=str(error))
