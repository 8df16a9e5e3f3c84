"""Blobs in a folder: `<root>/<tenant>/<first two digits>/<sha256>`, read-only files.

A file gets its name only when it is complete, verified and synced. An agent on the same machine copies it, and verifies
its copy: what becomes of the file here later changes nothing that runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pilotlight_core.host.blobs.blob_port import (
    CHUNK,
    STORE_ID,
    STORED_NAME,
    BlobContent,
    BlobInfo,
    BlobMissing,
    BlobsDown,
    DigestChecker,
    ErasedBlobs,
    NoBlobStore,
    check_stored,
    pieces,
)
from pilotlight_core.host.blobs.whole_reads import BlobReaders, BlobSource
from pilotlight_core.host.file_permissions import WALK_ONLY, private_folder
from pilotlight_core.model.ids import check_name, token

READ_ONLY = 0o444
T = TypeVar("T")


class FolderBlobs:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._readers = BlobReaders()

    def path(self, tenant: str, sha256: str) -> Path:
        """The path of the blob, which may not exist.

        Raises:
            BadInput: if the tenant or the digest is invalid.
        """
        check_stored(tenant, sha256)
        return self.root / tenant / sha256[:2] / sha256

    async def put(self, tenant: str, sha256: str, content: BlobContent, *, anew: bool = False) -> int:
        path = self.path(tenant, sha256)
        if not anew:
            with contextlib.suppress(FileNotFoundError):
                return await _disk(_touch, path)
        checker = DigestChecker(sha256)
        file, name = await _disk(_open_temporary, self.root, path)
        try:
            async for piece in pieces(content):
                checker.add(piece)
                await _disk(_write, file, piece)
            checker.finish()
            await _disk(_keep, file, name, path)
        finally:
            os.close(file)
            with contextlib.suppress(FileNotFoundError):
                name.unlink()
        return checker.size

    async def get(self, tenant: str, sha256: str) -> AsyncIterator[bytes]:
        path = self.path(tenant, sha256)
        try:
            file = await asyncio.to_thread(os.open, path, os.O_RDONLY)
        except FileNotFoundError:
            raise BlobMissing(f"There is no blob {sha256}.") from None
        try:
            while piece := await asyncio.to_thread(os.read, file, CHUNK):
                yield piece
        finally:
            os.close(file)

    async def read(self, tenant: str, sha256: str) -> bytes:
        path = self.path(tenant, sha256)
        try:
            return await _disk(path.read_bytes)
        except FileNotFoundError:
            raise BlobMissing(f"There is no blob {sha256}.") from None

    async def read_whole(self, tenant: str, sha256: str, work: Callable[[BlobSource], T]) -> T:
        return await self._readers.run(partial(_read_whole, self.path(tenant, sha256), work))

    async def head(self, tenant: str, sha256: str, size: int) -> bytes:
        path = self.path(tenant, sha256)
        try:
            return await _disk(_head, path, size)
        except FileNotFoundError:
            raise BlobMissing(f"There is no blob {sha256}.") from None

    async def stored(self, tenant: str, digests: Iterable[str]) -> dict[str, BlobInfo]:
        return await asyncio.to_thread(_stored, tenant, {digest: self.path(tenant, digest) for digest in digests})

    async def listed(self, tenant: str | None = None) -> AsyncIterator[BlobInfo]:
        owners = await asyncio.to_thread(_names, self.root) if tenant is None else [check_name(tenant, "tenant")]
        for owner in owners:
            for folder in await asyncio.to_thread(_names, self.root / owner):
                for one in await asyncio.to_thread(_blobs_in, self.root / owner / folder, owner):
                    yield one

    async def renew(self, tenant: str, sha256: str) -> bool:
        try:
            await _disk(_touch, self.path(tenant, sha256))
        except FileNotFoundError:
            return False
        return True

    async def link(self, tenant: str, sha256: str, seconds: float) -> str:  # noqa: ARG002 - none gives one
        return ""

    async def delete(self, tenant: str, sha256: str) -> None:
        await _disk(partial(self.path(tenant, sha256).unlink, missing_ok=True))

    async def erase(self, tenant: str) -> ErasedBlobs:
        return await _disk(_erase, self.root / check_name(tenant, "tenant"))

    async def store_id(self, *, create: bool) -> str:
        if await asyncio.to_thread(self.root.is_file):
            raise NoBlobStore(f"The blob store {self.root} is no folder.")
        return await _disk(_create_id if create else _read_id, self.root)

    async def aclose(self) -> None:
        self._readers.close()


def _create_id(root: Path) -> str:
    """The store's id; of two processes that make one, both get the first."""
    private_folder(root, WALK_ONLY)
    if found := _read_id(root):
        return found
    file, name = tempfile.mkstemp(prefix=".new-", dir=root)
    with os.fdopen(file, "w") as writing:
        writing.write(token())
        os.fchmod(file, READ_ONLY)
    with contextlib.suppress(FileExistsError):
        (root / STORE_ID).hardlink_to(name)
    Path(name).unlink()
    return _read_id(root)


def _read_id(root: Path) -> str:
    try:
        return (root / STORE_ID).read_text()
    except FileNotFoundError:
        return ""


def _names(folder: Path) -> list[str]:
    try:
        return sorted(one.name for one in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _blobs_in(folder: Path, tenant: str) -> list[BlobInfo]:
    found = []
    for name in _names(folder):
        with contextlib.suppress(FileNotFoundError):
            if STORED_NAME.fullmatch(name):
                status = (folder / name).stat()
                found.append(BlobInfo(tenant, name, status.st_size, status.st_mtime))
    return found


async def _disk(work: Callable[..., T], *args: Any) -> T:
    """The result of `work`, in a thread; OSError becomes BlobsDown, as for a full or missing disk."""
    try:
        return await asyncio.to_thread(work, *args)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _disk_error(error) from error


def _disk_error(error: OSError) -> BlobsDown:
    return BlobsDown(f"The blob store's disk does not do it: {error.strerror or error}.")


class _FileSource:
    """A file whose errors are the store's: those of whoever takes what is read are others."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file

    def readinto(self, buffer: memoryview, /) -> int:
        try:
            return self._file.readinto(buffer)
        except OSError as error:
            raise _disk_error(error) from error


def _read_whole(path: Path, work: Callable[[BlobSource], T]) -> T:
    try:
        file = io.FileIO(path)
    except FileNotFoundError:
        raise BlobMissing(f"There is no blob {path.name}.") from None
    except OSError as error:
        raise _disk_error(error) from error
    with file:
        return work(_FileSource(file))


def _touch(path: Path) -> int:
    """Renew the file's time, since the blob was put again; its size."""
    with contextlib.suppress(PermissionError):
        os.utime(path)
    return path.stat().st_size


def _head(path: Path, size: int) -> bytes:
    with path.open("rb", buffering=0) as file:
        return file.read(size)


def _stored(tenant: str, paths: dict[str, Path]) -> dict[str, BlobInfo]:
    found = {}
    for digest, path in paths.items():
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            found[digest] = BlobInfo(tenant, digest, status.st_size, status.st_mtime)
    return found


def _erase(folder: Path) -> ErasedBlobs:
    """Delete a tenant's folder, with what was left of uploads that broke off; the number of blobs and their bytes."""
    count = size = 0
    for path in folder.glob("*/*"):
        with contextlib.suppress(FileNotFoundError):
            count, size = count + 1, size + path.stat().st_size
            path.unlink()
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
    return ErasedBlobs(count, size)


def _open_temporary(root: Path, path: Path) -> tuple[int, Path]:
    """A file beside `path`. Other users cannot list the folders, so that they learn no digests."""
    for folder in (root, path.parent.parent, path.parent):
        private_folder(folder, WALK_ONLY)
    file, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    return file, Path(name)


def _write(file: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(file, view) :]


def _keep(file: int, name: Path, path: Path) -> None:
    os.fchmod(file, READ_ONLY)
    os.fsync(file)
    name.rename(path)
    # Sync the name too, since the registry that refers to it survives a power loss.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
