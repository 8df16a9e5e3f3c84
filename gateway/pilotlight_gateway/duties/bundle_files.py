"""The blobs that tenants' versions need: their manifests, and the files of their bundles."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import structlog

from pilotlight_core.host.blobs import BlobMissing, BlobStore, NoBlobStore
from pilotlight_gateway.deploys.present_files import files_of
from pilotlight_gateway.duties.version_collector import StoredVersion

FILES_AT_MOST = 2_000_000
"""Of one tenant; beyond it nothing of it is deleted."""

log = structlog.get_logger(__name__)


class BundleFiles:
    """The needs of `versions`, read tenant by tenant."""

    def __init__(self, blobs: BlobStore, versions: Iterable[StoredVersion]) -> None:
        self._blobs = blobs
        self._manifests: dict[str, set[str]] = {}
        for version in versions:
            self._manifests.setdefault(version.tenant, set()).add(version.manifest_sha256)

    async def of(self, tenant: str) -> frozenset[str] | None:
        """The digests that the tenant's versions need; None if that is not known. Raises BlobsDown."""
        needed = set(self._manifests.get(tenant, ()))
        for manifest in tuple(needed):
            try:
                needed |= files_of(await self._blobs.read(tenant, manifest))
            except (BlobMissing, NoBlobStore, msgspec.DecodeError) as error:
                log.warning(
                    "a manifest cannot be read, so no file of its tenant is deleted", tenant=tenant, why=str(error)
                )
                return None
            if len(needed) > FILES_AT_MOST:
                log.warning("a tenant has too many files to say which are needed", tenant=tenant)
                return None
        return frozenset(needed)
