"""The blobs that tenants need: manifests of their versions, files of bundles, weights that they have pushed, and files
that they have uploaded."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import structlog

from pilotlight_core.host.blobs import BlobMissing, BlobStore, NoBlobStore
from pilotlight_core.model.records.files import FileRecord
from pilotlight_core.model.versions.pushed_weights import WeightsRecord, parts_in
from pilotlight_gateway.deploys.present_files import files_of
from pilotlight_gateway.duties.version_collector import StoredVersion

FILES_AT_MOST = 2_000_000
"""Of one tenant; beyond it nothing of it is deleted."""

log = structlog.get_logger(__name__)


class BundleFiles:
    """The needs of `versions`, of `weights` and of `files` at the unix second `at`, read tenant by tenant."""

    def __init__(
        self,
        blobs: BlobStore,
        versions: Iterable[StoredVersion],
        weights: Iterable[WeightsRecord] = (),
        at: float = 0.0,
        files: Iterable[FileRecord] = (),
    ) -> None:
        self._blobs = blobs
        self._manifests: dict[str, set[str]] = {}
        self._documents: dict[str, set[str]] = {}
        """Of versions' evidence, and signatures over weights."""
        for version in versions:
            self._manifests.setdefault(version.tenant, set()).add(version.manifest_sha256)
            if version.evidence is not None:
                self._documents.setdefault(version.tenant, set()).update(version.evidence.digests)
        self._listings: dict[str, set[str]] = {}
        for record in weights:
            self._listings.setdefault(record.tenant, set()).update(one.digest for one in record.kept_at(at))
            signatures = {one.signature for one in record.kept_at(at) if one.signature}
            self._documents.setdefault(record.tenant, set()).update(signatures)
        self._uploaded: dict[str, set[str]] = {}
        for file in files:
            if file.is_kept(at):
                self._uploaded.setdefault(file.tenant, set()).update(part.sha256 for part in file.parts)

    async def of(self, tenant: str) -> frozenset[str] | None:
        """The digests that the tenant's versions need; None if that is not known. Raises BlobsDown."""
        manifests, listings = self._manifests.get(tenant, set()), self._listings.get(tenant, set())
        needed = manifests | listings
        for digest in tuple(needed):
            try:
                data = await self._blobs.read(tenant, digest)
                needed |= files_of(data) if digest in manifests else {part.sha256 for part in parts_in(data)}
            except (BlobMissing, NoBlobStore, msgspec.DecodeError) as error:
                log.warning(
                    "a manifest or a listing of weights cannot be read, so no file of its tenant is deleted",
                    tenant=tenant,
                    why=str(error),
                )
                return None
            if len(needed) > FILES_AT_MOST:
                log.warning("a tenant has too many files to say which are needed", tenant=tenant)
                return None
        return frozenset(needed | self._documents.get(tenant, set()) | self._uploaded.get(tenant, set()))
