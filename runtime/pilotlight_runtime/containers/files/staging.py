"""Staging: from a bind command to the version's verified files in the folders of a container."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

from pilotlight_core.host.blobs import BlobMissing, BlobsDown
from pilotlight_core.host.signing import Verifier
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_core.model.spec import ArtifactPart, FileEntry, Manifest, SignedManifest
from pilotlight_runtime.containers.files.artifact_files import artifact_files, check_artifacts
from pilotlight_runtime.containers.files.bundle import CannotVerify, check_manifest, read_signed
from pilotlight_runtime.containers.files.disk_room import DiskRoom
from pilotlight_runtime.containers.files.evidence_check import EvidenceCheck
from pilotlight_runtime.containers.files.file_cache import (
    FILE_MODE,
    UNFLUSHED_MODE,
    CacheKey,
    FileCache,
    lay_out,
    linked,
    verify_file,
)
from pilotlight_runtime.containers.files.node_weights import NodeWeights
from pilotlight_runtime.containers.files.part_writer import PartWriter, allocate
from pilotlight_runtime.containers.files.version_files import VersionFiles

AT_ONCE = 24
"""Files and parts of artifacts fetched at a time: what it takes to fill a network card from an object store."""
BUNDLES_AT_ONCE = 8
"""Files of bundles fetched at a time: they are small, and do not wait behind artifacts."""
OF_ONE = 16
"""Of those, for one container: others that start beside it find room, however much it fetches."""
PART_TRIES = 3
"""Of one part of a file, when the store breaks off."""
MAX_MANIFEST = 16 * 2**20
"""Bytes; gateways take none as large."""
Joined = Mapping[str, Sequence[ArtifactPart]]
"""By name in the cache, the parts of files that have several."""


class ManifestVerifier(Protocol):
    async def verify(self, signed: SignedManifest) -> Manifest:
        """Raises BadSignature, NoKey without a key to check with, and ConnectionError if it cannot ask for more."""
        ...

    async def verifier(self, name: str) -> Verifier:
        """What verifies other signatures of a key; raises as `verify`."""
        ...


class _Turns:
    """Those of one container's fetch: some of all that may be fetched at a time."""

    def __init__(self, all_turns: asyncio.Semaphore) -> None:
        self._own = asyncio.Semaphore(OF_ONE)
        self._all = all_turns

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        async with self._own, self._all:  # who waits in the line of all has one of its own
            yield


class Stager:
    """Brings versions to this node. Methods raise CannotVerify, BadSignature, NoDiskRoom, BlobMissing and BlobsDown."""

    def __init__(
        self,
        files: VersionFiles,
        verifier: ManifestVerifier,
        cache: FileCache,
        room: DiskRoom | None = None,
        weights: NodeWeights | None = None,
        evidence: EvidenceCheck | None = None,
    ) -> None:
        self._evidence = evidence or EvidenceCheck(files, verifier)
        self._files = files
        self._verifier = verifier
        self._cache = cache
        self._room = room or DiskRoom(cache.folder)
        self._weights = weights or NodeWeights(cache)
        self._bundle_turns = asyncio.Semaphore(BUNDLES_AT_ONCE)
        self._artifact_turns = asyncio.Semaphore(AT_ONCE)
        self._busy = 0
        self._fetching = WeakValueDictionary[tuple[str, str], asyncio.Lock]()
        """By tenant and name in the cache: containers that start together fetch a file once."""

    async def manifest(self, bind: Bind) -> Manifest:
        """The checked manifest that the command names, after the documents about it were checked too."""
        both: tuple[Awaitable[Any], ...] = (self._manifest(bind), self._evidence.fetch(bind))
        read, documents = await asyncio.gather(*both, return_exceptions=True)  # they have ended, whatever came of them
        if isinstance(read, BaseException):
            raise read
        if isinstance(documents, BaseException):
            raise documents
        manifest: Manifest
        manifest, signed = read
        await self._evidence.check(bind, manifest, signed, documents)
        return manifest

    async def _manifest(self, bind: Bind) -> tuple[Manifest, SignedManifest]:
        data = bytearray()
        async for piece in self._files.get(bind, bind.manifest_sha256):
            data += piece
            if len(data) > MAX_MANIFEST:
                break
        if hashlib.sha256(data).hexdigest() != bind.manifest_sha256:
            raise CannotVerify(f"The manifest of {bind.version} in the blob store is damaged.")
        signed = read_signed(bytes(data))
        manifest = await self._verifier.verify(signed)
        check_manifest(manifest, signed, bind)
        check_artifacts(manifest.artifacts)
        return manifest, signed

    async def stage(self, bind: Bind, manifest: Manifest, into: Path, models: Path) -> None:
        """Put the files of the bound version into the empty folder `into`, those of its artifacts into `models`."""
        artifacts = artifact_files(manifest.artifacts)
        joined = {file.entry.sha256: file.parts for file in artifacts if len(file.parts) > 1}
        entries = [*manifest.files, *(file.entry for file in artifacts)]
        lacking = self._room.lacking(bind.tenant, self._not_here(bind.tenant, entries))
        if lacking and not self._busy:
            await self._shrink(lacking, {(bind.tenant, file.sha256) for file in entries})
        coming = self._not_here(bind.tenant, entries)
        async with self._using():
            with self._room.held(bind.tenant, coming):
                await self._lay_out(bind, manifest.files, {}, into, _Turns(self._bundle_turns))
                turns, entries = _Turns(self._artifact_turns), [file.entry for file in artifacts]
                await self._lay_out(bind, entries, joined, models, turns)
            await self._weights.note_used(bind.tenant, manifest.artifacts)

    async def fetch_ahead(self, bind: Bind, most: int) -> None:
        """Have the files of a version's bundle here, which nobody has bound yet, if they are in a local store.

        Not if they are more than `most` bytes, nor if something would have to go for them.
        """
        if self._files.path(bind, bind.manifest_sha256) is None:
            return
        files = (await self._manifest(bind))[0].files  # what is bound later is checked then
        coming = self._not_here(bind.tenant, files)
        if sum(file.size for file in coming) > most or self._room.lacking(bind.tenant, coming):
            return
        async with self._using():
            with self._room.held(bind.tenant, coming):
                if missing := self._cache.missing(bind.tenant, files):
                    await self._fetch_all(bind, missing, {}, _Turns(self._bundle_turns))

    def _not_here(self, tenant: str, files: Iterable[FileEntry]) -> list[FileEntry]:
        return [file for file in files if not self._cache.holds(tenant, file)]

    async def _lay_out(self, bind: Bind, files: Sequence[FileEntry], joined: Joined, into: Path, turns: _Turns) -> None:
        if missing := self._cache.missing(bind.tenant, files):
            await self._fetch_all(bind, missing, joined, turns)
        sources = [(file, self._cache.path(bind.tenant, file.sha256)) for file in files]
        await asyncio.to_thread(lay_out, sources, into)

    @asynccontextmanager
    async def _using(self) -> AsyncIterator[None]:
        """Evict nothing while a version is staged: what was found must still be there when it is linked."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            if not self._busy:
                await self._shrink()

    async def _shrink(self, wanted: int = 0, kept: Set[CacheKey] = frozenset()) -> None:
        """Delete what is beyond the cache's limit, or more if `wanted` bytes are to become free."""
        if keys := self._cache.beyond(wanted):
            in_use = await asyncio.to_thread(linked, self._cache.folder, keys)
            # Another version may be staged by now: the cache shrinks after that one.
            if not self._busy and (gone := self._cache.shrink(in_use | kept, wanted)):
                await asyncio.to_thread(_delete, gone)

    async def _fetch_all(self, bind: Bind, files: list[FileEntry], joined: Joined, turns: _Turns) -> None:
        self._cache.path(bind.tenant, "").mkdir(parents=True, exist_ok=True)
        try:
            async with asyncio.TaskGroup() as group:
                for file in files:
                    group.create_task(self._fetch(bind, file, joined.get(file.sha256, ()), turns))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _fetch(self, bind: Bind, file: FileEntry, parts: Sequence[ArtifactPart], turns: _Turns) -> None:
        lock = self._fetching.setdefault((bind.tenant, file.sha256), asyncio.Lock())
        async with lock:
            if self._cache.holds(bind.tenant, file):
                return  # another container has fetched it meanwhile
            target = self._cache.path(bind.tenant, file.sha256)
            fresh = target.with_suffix(f".{token(8)}")
            self._room.write(bind.tenant, file.sha256, fresh)
            try:
                if parts:
                    await self._join(bind, file, parts, fresh, turns)
                else:
                    async with turns.turn():
                        local = self._files.path(bind, file.sha256)
                        if local is None or not await asyncio.to_thread(_take_local, local, fresh, file):
                            await self._download(bind, file, fresh)
                fresh.replace(target)
            finally:
                fresh.unlink(missing_ok=True)
            self._cache.add(bind.tenant, file)
            self._room.settle(bind.tenant, file.sha256)

    async def _join(
        self, bind: Bind, file: FileEntry, parts: Sequence[ArtifactPart], fresh: Path, turns: _Turns
    ) -> None:
        """Write parts one behind the other into the file `fresh`, each at its place as it comes."""
        await asyncio.to_thread(fresh.touch, 0o600)
        await asyncio.to_thread(allocate, fresh, file.size)
        try:
            async with asyncio.TaskGroup() as group:
                for number, (part, start) in enumerate(zip(parts, _starts(parts), strict=True), 1):
                    name = f"part {number} of {len(parts)} of {file.path}"
                    group.create_task(self._write_part(bind, part, name, fresh, start, turns))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        await asyncio.to_thread(fresh.chmod, UNFLUSHED_MODE)  # until `NodeWeights` has flushed it

    async def _write_part(
        self, bind: Bind, part: ArtifactPart, name: str, fresh: Path, start: int, turns: _Turns
    ) -> None:
        """Write a part; it begins anew if the store breaks off, since the other parts of a large file took long."""
        for tries_left in reversed(range(PART_TRIES)):
            try:
                async with turns.turn():
                    await self._copy_part(bind, part, name, fresh, start)
            except BlobMissing:
                raise CannotVerify(f"{name} is not in the blob store.") from None
            except BlobsDown:
                if not tries_left:
                    raise
            else:
                return

    async def _copy_part(self, bind: Bind, part: ArtifactPart, name: str, fresh: Path, start: int) -> None:
        writer = PartWriter(fresh, start, part, name)
        await self._files.copy(bind, part.sha256, writer)
        writer.finish()

    async def _download(self, bind: Bind, file: FileEntry, fresh: Path) -> None:
        digest, size = hashlib.sha256(), 0
        with fresh.open("wb") as out:
            try:
                async for piece in self._files.get(bind, file.sha256):
                    digest.update(piece)
                    size += len(piece)
                    if size > file.size:
                        break
                    await asyncio.to_thread(out.write, piece)
            except BlobMissing:
                raise CannotVerify(f"{file.path} is not in the blob store.") from None
            os.fchmod(out.fileno(), FILE_MODE)
        if size != file.size or digest.hexdigest() != file.sha256:
            raise CannotVerify(f"{file.path} in the blob store is not what was signed.")


def _take_local(blob: Path, fresh: Path, file: FileEntry) -> bool:
    """False: it is not there any more, but may be under another name since, sealed.

    A copy, and no link: who changes the store's file later changes nothing that was verified.
    """
    try:
        shutil.copyfile(blob, fresh)
    except FileNotFoundError:
        return False
    fresh.chmod(FILE_MODE)
    verify_file(fresh, file)
    return True


def _starts(parts: Sequence[ArtifactPart]) -> list[int]:
    """Where each part begins in the file, in bytes."""
    return list(accumulate((part.size for part in parts), initial=0))[:-1]


def _delete(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
