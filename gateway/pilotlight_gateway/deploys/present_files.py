"""What a deploy finds: files that are stored and will stay, and what its requirements were locked to before."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from pilotlight_core.host.blobs import BlobInfo, BlobMissing, BlobsDown, BlobStore
from pilotlight_core.model.packages.package_locks import PackageLock
from pilotlight_core.model.spec import DEFAULT_BASE, AppRecord, ArtifactEntry, FileEntry, SignedManifest
from pilotlight_core.model.versions.artifacts import parts_of
from pilotlight_gateway.tenancy.registry_port import RegistryPort

TRUSTED_S = 43_200.0
"""Half the time for which `duties.orphan_blobs` leaves a blob that nothing needs: the rest is for the deploy."""

RENEWING_S = 15.0
"""How long one deploy may renew blobs: an answer must come before its client gives up."""


class _FilesOnly(msgspec.Struct, frozen=True):
    """A manifest but for its spec."""

    files: tuple[FileEntry, ...]
    artifacts: tuple[ArtifactEntry, ...] = ()


async def staying_files(
    blobs: BlobStore, tenant: str, stored: Mapping[str, BlobInfo], needed: frozenset[str], at: float
) -> frozenset[str]:
    """The digests of `stored` that will stay, at the unix second `at`; the others are to be uploaded.

    What is old and not of `needed` may be about to be deleted, so it is renewed. It is looked at again then, since a
    sweep that had last looked before may have deleted it after. Raises BlobsDown, also if all that takes too long.
    """
    old = {digest for digest, info in stored.items() if at - info.at > TRUSTED_S and digest not in needed}
    if not old:
        return frozenset(stored)
    try:
        async with asyncio.timeout(RENEWING_S):
            await asyncio.gather(*(blobs.renew(tenant, digest) for digest in old))
    except TimeoutError:
        raise BlobsDown(
            f"The blob store takes longer than {RENEWING_S:g} s to renew stored files: deploy again, it goes on there."
        ) from None
    again = await blobs.stored(tenant, old)
    return frozenset(stored) - old | {digest for digest, info in again.items() if at - info.at <= TRUSTED_S}


async def files_in_service(registry: RegistryPort, blobs: BlobStore, app: AppRecord | None) -> frozenset[str]:
    """The digests of an app's present files, which its functions share, and of their artifacts. Raises BlobsDown."""
    found: frozenset[str] = frozenset()
    for version_id in app.functions.values() if app is not None else ():
        version = await registry.fetch_version(version_id)
        if version is not None and (not found or version.artifacts):
            try:
                found |= files_of(await blobs.read(version.tenant, version.manifest_sha256))
            except (BlobMissing, msgspec.DecodeError):
                continue
    return found


class _LockOnly(msgspec.Struct, frozen=True):
    """A manifest's base environment, and what was locked over it."""

    base: str = DEFAULT_BASE
    lock: PackageLock | None = None


async def lock_in_service(
    registry: RegistryPort, blobs: BlobStore, app: AppRecord | None, base: str, requirements: tuple[str, ...]
) -> PackageLock | None:
    """What an app's present functions were locked to, if it was for the same requirements. Raises BlobsDown."""
    for version_id in app.functions.values() if app is not None else ():
        version = await registry.fetch_version(version_id)
        if version is None or not version.environment:
            continue
        try:
            signed = await blobs.read(version.tenant, version.manifest_sha256)
            data = msgspec.msgpack.decode(signed, type=SignedManifest).manifest
            known = msgspec.json.decode(data, type=_LockOnly)
        except (BlobMissing, msgspec.DecodeError):
            continue
        # A deploy changes all functions of an app, so they have one lock.
        is_same = known.lock is not None and known.base == base and known.lock.requirements == requirements
        return known.lock if is_same else None
    return None


def files_of(signed: bytes) -> frozenset[str]:
    """The digests of a signed manifest's files and of its artifacts' parts. Raises DecodeError."""
    data = msgspec.msgpack.decode(signed, type=SignedManifest).manifest
    manifest = msgspec.json.decode(data, type=_FilesOnly)
    files = frozenset(entry.sha256 for entry in manifest.files)
    return files | {part.sha256 for part in parts_of(manifest.artifacts)}
