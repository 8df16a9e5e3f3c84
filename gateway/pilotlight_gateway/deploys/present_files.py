"""Which files of a deploy need no upload, because they are stored and will stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from pilotlight_core.host.blobs import BlobInfo, BlobMissing, BlobStore
from pilotlight_core.model.spec import AppRecord, FileEntry, SignedManifest
from pilotlight_gateway.tenancy.registry_port import RegistryPort

TRUSTED_S = 1_800.0
"""Half the time for which `duties.orphan_blobs` leaves a blob that nothing needs: the rest is for the deploy."""


class _FilesOnly(msgspec.Struct, frozen=True):
    """A manifest but for its spec."""

    files: tuple[FileEntry, ...]


def missing_files(
    digests: Iterable[str], stored: Mapping[str, BlobInfo], needed: frozenset[str], at: float
) -> tuple[str, ...]:
    """The digests to upload at the unix second `at`: what is not stored, and what is old and of no present version.

    An old blob may be about to be deleted; uploading it again renews it.
    """
    return tuple(
        digest
        for digest in digests
        if (info := stored.get(digest)) is None or (at - info.at > TRUSTED_S and digest not in needed)
    )


async def files_in_service(registry: RegistryPort, blobs: BlobStore, app: AppRecord | None) -> frozenset[str]:
    """The digests of an app's present files, which all its functions share. Raises BlobsDown."""
    for version_id in app.functions.values() if app is not None else ():
        version = await registry.fetch_version(version_id)
        if version is not None:
            try:
                return files_of(await blobs.read(version.tenant, version.manifest_sha256))
            except (BlobMissing, msgspec.DecodeError):
                continue
    return frozenset()


def files_of(signed: bytes) -> frozenset[str]:
    """The digests of a signed manifest's files. Raises DecodeError."""
    manifest = msgspec.msgpack.decode(signed, type=SignedManifest).manifest
    return frozenset(entry.sha256 for entry in msgspec.json.decode(manifest, type=_FilesOnly).files)
