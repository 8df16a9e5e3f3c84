"""A node's verified files, `<folder>/<tenant>/<sha256>`: fetched once and hard-linked into many containers.

Tenants do not share files, so that the speed of a start does not tell what others have deployed. Files that a container
has are kept: to delete them would free nothing. When the others exceed the limit, the least recently used are deleted
of the tenant who has the most of them, so that nobody drives out what others have less of.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pilotlight_core.host.config import CACHE_BYTES
from pilotlight_core.model.spec import FileEntry
from pilotlight_runtime.containers.files.bundle import CannotVerify

CHUNK = 2**20
JOINED = "joined-"
"""Begins the names of files that were written in parts, each at its place."""
FILE_MODE = 0o444
UNFLUSHED_MODE = 0o644
"""Of a joined file that may not be on the disk yet. It has its size from the beginning, so whether all of it is there
after the machine has stopped is not seen by that."""
CacheKey = tuple[str, str]
"""A tenant, and a name in the cache."""


@dataclass(frozen=True, kw_only=True)
class CacheStatistics:
    files: int
    bytes: int
    limit: int
    hits: int
    misses: int


class FileCache:
    """The index belongs to the loop's thread; the functions below it use the disk and may run in any."""

    def __init__(self, folder: Path, limit: int = CACHE_BYTES) -> None:
        self.folder = folder
        self._limit = limit
        self._sizes: OrderedDict[CacheKey, int] = OrderedDict()
        self._bytes = self._hits = self._misses = 0
        for tenant, digest, size in _scan(folder):
            self._add((tenant, digest), size)

    def path(self, tenant: str, digest: str) -> Path:
        return self.folder / tenant / digest

    def missing(self, tenant: str, files: Iterable[FileEntry]) -> list[FileEntry]:
        """Those of `files` that must be fetched, each digest once; the others count as used."""
        wanted = {file.sha256: file for file in files}
        missing = []
        for digest, file in wanted.items():
            if self.holds(tenant, file):
                self._sizes.move_to_end((tenant, digest))
            else:
                missing.append(file)
        self._hits += len(wanted) - len(missing)
        self._misses += len(missing)
        return missing

    def holds(self, tenant: str, file: FileEntry) -> bool:
        """Whether a file is there; it does not count as used."""
        return self._sizes.get((tenant, file.sha256)) == file.size

    def add(self, tenant: str, file: FileEntry) -> None:
        self._add((tenant, file.sha256), file.size)

    def named(self, prefix: str) -> list[CacheKey]:
        """Those whose name in the cache begins so."""
        return [key for key in self._sizes if key[1].startswith(prefix)]

    def tenants(self) -> list[str]:
        """Those who have files here."""
        return sorted({tenant for tenant, _ in self._sizes})

    def drop(self, tenant: str) -> int:
        """Forget a tenant's files, which the caller deletes; their number."""
        keys = [key for key in self._sizes if key[0] == tenant]
        for key in keys:
            self._bytes -= self._sizes.pop(key)
        return len(keys)

    def beyond(self, wanted: int = 0) -> list[CacheKey]:
        """All files, if they exceed the limit or bytes are `wanted`: `shrink` has to know which are linked."""
        return list(self._sizes) if wanted or self._bytes > self._limit else []

    def shrink(self, linked: Set[CacheKey] = frozenset(), wanted: int = 0) -> list[Path]:
        """The files to delete so that those which are not linked are within the limit; the index forgets them.

        They have `wanted` bytes at least; if there are not as many, nothing is deleted for it.
        """
        unused: dict[str, deque[str]] = {}
        sizes = Counter[str]()
        for (tenant, digest), size in self._sizes.items():
            if (tenant, digest) not in linked:
                unused.setdefault(tenant, deque()).append(digest)
                sizes[tenant] += size
        total = sizes.total()
        excess, gone = max(total - self._limit, wanted if wanted <= total else 0), []
        while excess > 0:
            tenant = max(sizes, key=sizes.__getitem__)
            digest = unused[tenant].popleft()
            size = self._sizes.pop((tenant, digest))
            self._bytes -= size
            sizes[tenant] -= size
            excess -= size
            gone.append(self.path(tenant, digest))
        return gone

    def statistics(self) -> CacheStatistics:
        return CacheStatistics(
            files=len(self._sizes), bytes=self._bytes, limit=self._limit, hits=self._hits, misses=self._misses
        )

    def check_integrity(self) -> None:
        if self._bytes != sum(self._sizes.values()):
            raise AssertionError(f"the cache counts {self._bytes} bytes, its files have {sum(self._sizes.values())}")

    def _add(self, key: CacheKey, size: int) -> None:
        self._bytes += size - self._sizes.pop(key, 0)
        self._sizes[key] = size


def linked(folder: Path, keys: Iterable[CacheKey]) -> set[CacheKey]:
    """Those of the files in a cache that have links elsewhere, as in a container."""
    found = set()
    for tenant, digest in keys:
        with suppress(FileNotFoundError):
            if (folder / tenant / digest).stat().st_nlink > 1:
                found.add((tenant, digest))
    return found


def _scan(folder: Path) -> list[tuple[str, str, int]]:
    """(tenant, digest, size) of every file, the longest unchanged first; removes leftovers of a fetch."""
    found = []
    for path in folder.glob("*/*"):
        if path.suffix:
            path.unlink()
            continue
        status = path.stat()
        if path.name.startswith(JOINED) and status.st_mode & stat.S_IWUSR:
            path.unlink()
            continue
        found.append((status.st_mtime, path.parent.name, path.name, status.st_size))
    return [(tenant, digest, size) for _, tenant, digest, size in sorted(found)]


def flush_joined(path: Path) -> None:
    """Have a joined file on the disk, and say so by its mode: the next agent believes its size then. Raises OSError."""
    file = os.open(path, os.O_RDONLY)
    try:
        if os.fstat(file).st_mode & stat.S_IWUSR:
            os.fsync(file)
            os.fchmod(file, FILE_MODE)
    finally:
        os.close(file)


def verify_file(path: Path, file: FileEntry) -> None:
    """Check that a file has the size and digest of `file`.

    Raises:
        CannotVerify: if it has not.
    """
    if (size := path.stat().st_size) != file.size:
        raise CannotVerify(f"{file.path} in the blob store has {size} bytes, not {file.size} as signed.")
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != file.sha256:
        raise CannotVerify(f"{file.path} in the blob store has digest {digest}, not {file.sha256} as signed.")


def link_or_copy(source: Path, target: Path) -> None:
    """Make a hard link where the file system allows one more, else a read-only copy."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        return
    except OSError:  # another file system, or as many links as it can count
        shutil.copyfile(source, target, follow_symlinks=False)
        target.chmod(FILE_MODE)


def lay_out(files: Iterable[tuple[FileEntry, Path]], into: Path) -> None:
    """Link each file to its path below `into`, an empty folder that only the agent can write."""
    made: set[Path] = {into}
    for file, source in files:
        target = into / file.path
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        link_or_copy(source, target)
