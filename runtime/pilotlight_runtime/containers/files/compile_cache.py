"""What versions' containers have compiled on this node: `<folder>/<tenant>/<version>/`, laid out for their next ones.

A container hands over what its compilers have left when it has become ready, before its first call. So what is kept is
of the code that was deployed and nothing that a caller sends gets into it; and a container that lies about it misleads
later ones of its own version on this node, which nobody else uses. The agent makes the files: guests send it names and
bytes, both bounded. What is least recently used is deleted of the tenant who has the most.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

import structlog

from pilotlight_core.model.ids import token
from pilotlight_runtime.containers.files.disk_room import disk_room
from pilotlight_runtime.containers.files.file_cache import link_or_copy
from pilotlight_runtime.guest import frames as guest

log = structlog.get_logger(__name__)

MOST_FILES = 4_096
MOST_BYTES = 256 * 2**20
"""Of one version, of which the files that a start adds are a part."""
FILE_BYTES = 4_096
"""What a file counts beside its bytes, as on a disk: thousands of empty ones at each start are not free."""
MOST_DEPTH = 12
MOST_PATH = 512
FILE_MODE = 0o444
VersionKey = tuple[str, str]
"""A tenant, and its version."""


class CompileCache:
    """The index belongs to the loop's thread; files are touched in others."""

    def __init__(
        self,
        folder: Path,
        limit: int,
        *,
        most_bytes: int = MOST_BYTES,
        most_files: int = MOST_FILES,
        file_bytes: int = FILE_BYTES,
        room: Callable[[Path], int] = disk_room,
    ) -> None:
        """`limit`: bytes of all versions together; `most_bytes` and `most_files`: of one, where each file counts
        `file_bytes` beside its own. `room`: of the disk.
        """
        self.folder = folder
        self.limit = limit
        self.most_bytes = most_bytes
        self.most_files = most_files
        self.file_bytes = file_bytes
        self.room = room
        self.coming = 0
        """Bytes of hand-overs that are not over."""
        self._sizes: OrderedDict[VersionKey, int] = OrderedDict()
        for tenant, version, size in _scan(folder, file_bytes):
            self._sizes[tenant, version] = size

    def tenants(self) -> list[str]:
        """Those who have files here."""
        return sorted({tenant for tenant, _ in self._sizes})

    def drop(self, tenant: str) -> int:
        """Forget what a tenant has, which the caller deletes; the number of its versions."""
        keys = [key for key in self._sizes if key[0] == tenant]
        for key in keys:
            del self._sizes[key]
        return len(keys)

    def size_of(self, tenant: str, version: str) -> int:
        return self._sizes.get((tenant, version), 0)

    async def lay_out(self, tenant: str, version: str, into: Path) -> None:
        """Link what is kept of a version into the empty folder `into`, if anything is."""
        if (tenant, version) not in self._sizes:
            return
        self._sizes.move_to_end((tenant, version))
        try:
            await asyncio.to_thread(_link, self.folder / tenant / version, into)
        except OSError as error:  # the start does without
            log.warning("what was compiled before could not be laid out", version=version, error=str(error))

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more may come, beside those of others."""
        return self.coming + size <= self.limit

    def begin(self, tenant: str, version: str) -> CompileHandover:
        """The hand-over of one start."""
        return CompileHandover(self, tenant, version)

    async def settle(self, tenant: str, version: str) -> None:
        """Count a version's files anew, and delete what is beyond the limit."""
        size = await asyncio.to_thread(_size, self.folder / tenant / version, self.file_bytes)
        self._sizes[tenant, version] = size
        self._sizes.move_to_end((tenant, version))
        for key in self._beyond():
            await asyncio.to_thread(shutil.rmtree, self.folder / key[0] / key[1], ignore_errors=True)

    def _beyond(self) -> list[VersionKey]:
        """Those to delete, which the index forgets."""
        sizes = Counter[str]()
        for (tenant, _), size in self._sizes.items():
            sizes[tenant] += size
        gone = []
        while sum(sizes.values()) > self.limit and self._sizes:
            tenant = max(sizes, key=sizes.__getitem__)
            key = next(key for key in self._sizes if key[0] == tenant)
            sizes[tenant] -= self._sizes.pop(key)
            gone.append(key)
        return gone


class CompileHandover:
    """Takes the files of one start, piece by piece; `commit` or `discard` ends it, and may come again."""

    def __init__(self, cache: CompileCache, tenant: str, version: str) -> None:
        self._cache = cache
        self._tenant = tenant
        self._version = version
        self._fresh = cache.folder / tenant / f"{version}.{token(8)}"
        self._left = cache.most_bytes - cache.size_of(tenant, version)
        self._taken = 0
        self._has_begun = False
        self._paths: list[str] = []
        self._open = ""
        """The path of the file whose pieces come."""

    async def take(self, piece: guest.CompilePiece) -> bool:
        """Take a piece of a file; False: nothing more is taken."""
        size = len(piece.data) + (0 if self._open else self._cache.file_bytes)
        is_next = (
            piece.path == self._open
            if self._open
            else len(self._paths) < self._cache.most_files and is_path(piece.path)
        )
        # Else a guest keeps the agent busy with small ones.
        is_full = piece.ends or len(piece.data) >= guest.COMPILE_PIECE
        if not (is_next and is_full and size <= self._left and self._cache.has_room(size)):
            return False
        self._left -= size
        self._taken += size
        self._cache.coming += size
        self._has_begun = True
        try:
            await asyncio.to_thread(self._write, piece.path, piece.data, is_new=not self._open)
        except OSError as error:  # no room, or a file where a folder is
            log.warning("what a container has compiled could not be kept", version=self._version, error=str(error))
            self._left = -1
            return False
        self._open = "" if piece.ends else piece.path
        if piece.ends:
            self._paths.append(piece.path)
        return True

    async def commit(self) -> None:
        """Keep the whole files; files of the same name are replaced."""
        if self._paths:
            paths, self._paths = self._paths, []
            await asyncio.to_thread(_move, self._fresh, paths, self._cache.folder / self._tenant / self._version)
            await self._cache.settle(self._tenant, self._version)
            log.info("what a container has compiled is kept", version=self._version, files=len(paths))
        await self.discard()

    async def discard(self) -> None:
        self._cache.coming -= self._taken
        self._left = self._taken = 0
        if self._has_begun:
            self._has_begun = False
            await asyncio.to_thread(shutil.rmtree, self._fresh, ignore_errors=True)

    def _write(self, path: str, data: bytes, *, is_new: bool) -> None:
        if is_new and self._cache.room(self._cache.folder) < self._cache.most_bytes:
            raise OSError("the disk is nearly full")
        target = self._fresh / path
        if is_new:
            target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb" if is_new else "ab") as out:
            out.write(data)


def is_path(path: str) -> bool:
    """Whether a guest's path stays below its folder, in names that any file system takes."""
    names = path.split("/")
    return (
        len(path) <= MOST_PATH
        and len(names) <= MOST_DEPTH
        and path.isprintable()
        and all(name not in ("", ".", "..") and len(name.encode(errors="replace")) <= 255 for name in names)
    )


def _move(source: Path, paths: list[str], into: Path) -> None:
    """Files that cannot be where they belong are left out."""
    for path in paths:
        target = into / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with (source / path).open("rb") as file:
                os.fchmod(file.fileno(), FILE_MODE)
                os.fsync(file)  # else a machine that stops may leave it empty, and each later start fails by it
            (source / path).replace(target)
        except OSError as error:
            log.warning("a compiled file could not be kept", path=str(target), error=str(error))


def _link(source: Path, into: Path) -> None:
    for path, _ in _files(source):
        target = into / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(path, target)


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """The files below a folder that only the agent writes, and their sizes."""
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            try:
                yield path, path.stat().st_size
            except FileNotFoundError:  # replaced or deleted meanwhile
                continue


def _size(folder: Path, file_bytes: int) -> int:
    return sum(size + file_bytes for _, size in _files(folder))


def _scan(folder: Path, file_bytes: int) -> list[tuple[str, str, int]]:
    """(tenant, version, bytes), the longest unchanged first; removes leftovers of starts."""
    found = []
    for path in folder.glob("*/*"):
        if path.suffix:
            shutil.rmtree(path, ignore_errors=True)
            continue
        found.append((path.stat().st_mtime, path.parent.name, path.name, _size(path, file_bytes)))
    return [(tenant, version, size) for _, tenant, version, size in sorted(found)]
