"""Staging: from a bind command to the version's verified files in a container's code folder."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from pilotlight_core.host.signing import Verifier
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_messages import Bind
from pilotlight_core.model.spec import FileEntry, Manifest, SignedManifest
from pilotlight_runtime.containers.bundle import CannotVerify, check_manifest, read_signed
from pilotlight_runtime.containers.file_cache import FileCache, lay_out, link_or_copy, verify_file
from pilotlight_runtime.containers.version_files import VersionFiles

AT_ONCE = 16
"""Files fetched at a time: what it takes to fill a network card from an object store."""
FILE_MODE = 0o444
MAX_MANIFEST = 16 * 2**20
"""Bytes; gateways take none as large."""


class ManifestVerifier(Protocol):
    def verify(self, signed: SignedManifest) -> Manifest:
        """Raises BadSignature, and NoKey without a key to check with."""


class TrustedKey:
    """The platform's public key in `folder`, read when first needed: the gateway may make it after this start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._verifier: Verifier | None = None

    def verify(self, signed: SignedManifest) -> Manifest:
        if self._verifier is None or self._verifier.key_id != signed.key_id:
            self._verifier = Verifier.load(self._folder)
        return self._verifier.verify(signed)


class Stager:
    """Brings versions to this node. Methods raise CannotVerify, BadSignature, BlobMissing and BlobsDown."""

    def __init__(self, files: VersionFiles, verifier: ManifestVerifier, cache: FileCache) -> None:
        self._files = files
        self._verifier = verifier
        self._cache = cache
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._busy = 0

    async def manifest(self, bind: Bind) -> Manifest:
        """The checked manifest that the command names."""
        data = bytearray()
        async for piece in self._files.get(bind, bind.manifest_sha256):
            data += piece
            if len(data) > MAX_MANIFEST:
                break
        if hashlib.sha256(data).hexdigest() != bind.manifest_sha256:
            raise CannotVerify(f"The manifest of {bind.version} in the blob store is damaged.")
        manifest = self._verifier.verify(read_signed(bytes(data)))
        check_manifest(manifest, bind)
        return manifest

    async def stage(self, bind: Bind, manifest: Manifest, into: Path) -> None:
        """Put the files of the bound version into the empty folder `into`."""
        tenant = manifest.tenant
        async with self._using():
            missing = self._cache.missing(tenant, manifest.files)
            if missing:
                await self._fetch_all(bind, missing)
            files = [(file, self._cache.path(tenant, file.sha256)) for file in manifest.files]
            await asyncio.to_thread(lay_out, files, into)

    @asynccontextmanager
    async def _using(self) -> AsyncIterator[None]:
        """Evict nothing while a version is staged: what was found must still be there when it is linked."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            if not self._busy and (gone := self._cache.shrink()):
                await asyncio.to_thread(_delete, gone)

    async def _fetch_all(self, bind: Bind, files: list[FileEntry]) -> None:
        self._cache.path(bind.tenant, "").mkdir(parents=True, exist_ok=True)
        try:
            async with asyncio.TaskGroup() as group:
                for file in files:
                    group.create_task(self._fetch(bind, file))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _fetch(self, bind: Bind, file: FileEntry) -> None:
        target = self._cache.path(bind.tenant, file.sha256)
        fresh = target.with_suffix(f".{token(8)}")
        async with self._turns:
            try:
                if local := self._files.path(bind, file.sha256):
                    await asyncio.to_thread(_take_local, local, fresh, file)
                else:
                    await self._download(bind, file, fresh)
                fresh.replace(target)
            finally:
                fresh.unlink(missing_ok=True)
        self._cache.add(bind.tenant, file)

    async def _download(self, bind: Bind, file: FileEntry, fresh: Path) -> None:
        digest, size = hashlib.sha256(), 0
        with fresh.open("wb") as out:
            async for piece in self._files.get(bind, file.sha256):
                digest.update(piece)
                size += len(piece)
                if size > file.size:
                    break
                await asyncio.to_thread(out.write, piece)
            os.fchmod(out.fileno(), FILE_MODE)
        if size != file.size or digest.hexdigest() != file.sha256:
            raise CannotVerify(f"{file.path} in the blob store is not what was signed.")


def _take_local(blob: Path, fresh: Path, file: FileEntry) -> None:
    try:
        link_or_copy(blob, fresh)
    except FileNotFoundError:
        raise CannotVerify(f"{file.path} is not in the blob store.") from None
    verify_file(fresh, file)


def _delete(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
