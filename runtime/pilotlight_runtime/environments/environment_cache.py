"""A node's built environments, `<folder>/<tenant>/<name>/`: built once, and linked into many containers.

    record       how many files and bytes there are; last of all written, and linked into each container that has them
    packages/    the files

Tenants do not share them, so that the speed of a start does not tell what others use. Each is made under another name,
flushed to the disk, and renamed: what is there under its own name is whole, whenever the machine stops. One that a
container has is kept: its files are linked, so that to delete it would free nothing. When the others exceed the limit,
the least recently used goes of the tenant who has the most.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pilotlight_core.model.ids import token

MOST_REPORTED = 512
"""Environments that a node's report names."""
RECORD, PACKAGES = "record", "packages"


class EnvironmentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the file `record`."""

    id: str
    """`environment_id` of its lock and tenant."""
    files: int
    bytes: int
    """As they count on a disk."""


@dataclass(frozen=True, kw_only=True)
class BuiltEnvironment:
    """One that is whole."""

    tenant: str
    folder: Path
    record: EnvironmentRecord

    @property
    def packages(self) -> Path:
        return self.folder / PACKAGES


class EnvironmentCache:
    """The index belongs to the loop's thread; the functions below it use the disk and may run in any."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._built = OrderedDict[tuple[str, str], BuiltEnvironment]()
        self._pinned = Counter[tuple[str, str]]()
        for found in _scan(folder):
            self._built[found.tenant, found.folder.name] = found

    def find(self, tenant: str, name: str) -> BuiltEnvironment | None:
        """What is built under a name; it counts as used."""
        found = self._built.get((tenant, name))
        if found is not None:
            self._built.move_to_end((tenant, name))
            with suppress(OSError):
                os.utime(found.folder / RECORD)
        return found

    def fresh_folder(self, tenant: str, name: str) -> Path:
        """Where one is to be made: a new folder, which the next agent removes if it is left behind."""
        folder = self._folder / tenant / f"{name}.{token(8)}"
        (folder / PACKAGES).mkdir(parents=True)
        return folder

    def add(self, tenant: str, name: str, record: EnvironmentRecord) -> BuiltEnvironment:
        """Take in what `keep_built` has renamed."""
        built = BuiltEnvironment(tenant=tenant, folder=self._folder / tenant / name, record=record)
        self._built[tenant, name] = built
        return built

    def path(self, tenant: str, name: str) -> Path:
        return self._folder / tenant / name

    def pin(self, built: BuiltEnvironment) -> Callable[[], None]:
        """Keep one until what is returned is called, however much there is."""
        key = built.tenant, built.folder.name
        self._pinned[key] += 1

        def release() -> None:
            self._pinned[key] -= 1

        return release

    def shrink(self, wanted: int = 0) -> list[Path]:
        """The folders to delete, so that what no container has is within the limit; the index forgets them.

        They have `wanted` bytes at least, as far as there are as many.
        """
        unused = OrderedDict((key, each) for key, each in self._built.items() if not self._pinned[key] > 0)
        unused = OrderedDict((key, each) for key, each in unused.items() if not _is_linked(each))
        sizes = Counter[str]()
        for (tenant, _), each in unused.items():
            sizes[tenant] += each.record.bytes
        total, gone = sizes.total(), list[Path]()
        excess = max(total - self._limit, min(wanted, total))
        while excess > 0:
            tenant = max(sizes, key=sizes.__getitem__)
            key = next(key for key in unused if key[0] == tenant)
            each = unused.pop(key)
            del self._built[key]
            sizes[tenant] -= each.record.bytes
            excess -= each.record.bytes
            # Under another name at once: the next one of this name may come before it is deleted.
            away = each.folder.with_name(f"{each.folder.name}.{token(8)}")
            with suppress(OSError):
                each.folder.rename(away)
            gone.append(away)
        return gone

    def ids(self) -> tuple[str, ...]:
        """Those that are built, as far as a report names them: the latest used."""
        return tuple(sorted({each.record.id for each in list(self._built.values())[-MOST_REPORTED:]}))

    def forget(self, built: BuiltEnvironment) -> None:
        """It is not whole any more, or gone from the disk."""
        key = built.tenant, built.folder.name
        if self._built.get(key) is built:
            del self._built[key]

    def tenants(self) -> list[str]:
        """Those who have environments here."""
        return sorted({tenant for tenant, _ in self._built})

    @property
    def folder(self) -> Path:
        """Where each tenant has a folder of its own."""
        return self._folder

    def drop(self, tenant: str) -> int:
        """Forget a tenant's environments, which the caller deletes; how many they were."""
        keys = [key for key in self._built if key[0] == tenant]
        for key in keys:
            del self._built[key]
        return len(keys)

    def __len__(self) -> int:
        return len(self._built)

    @property
    def bytes(self) -> int:
        """Of all that is built."""
        return sum(each.record.bytes for each in self._built.values())


def keep_built(fresh: Path, target: Path, record: EnvironmentRecord) -> None:
    """Give a finished environment its name, once all of it is on the disk. Raises OSError."""
    (fresh / RECORD).write_bytes(msgspec.json.encode(record))
    (fresh / RECORD).chmod(0o444)
    _flush_file_system(fresh)
    delete_folder(target)  # a damaged one
    fresh.rename(target)
    parent = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def link_environment(built: BuiltEnvironment, into: Path, mark: Path) -> None:
    """Link all files below the empty folder `into`, which only the agent can write; `mark` keeps them in the cache."""
    link_or_copy_file(built.folder / RECORD, mark)
    folders = [(built.packages, into)]
    while folders:
        source, target = folders.pop()
        with os.scandir(source) as entries:
            for entry in entries:
                to = target / entry.name
                if entry.is_dir(follow_symlinks=False):
                    to.mkdir()
                    folders.append((Path(entry.path), to))
                else:
                    link_or_copy_file(Path(entry.path), to)


def link_or_copy_file(source: Path, target: Path) -> None:
    """Make a hard link where the file system allows one more, else a copy."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:  # as many links as it can count
        shutil.copyfile(source, target, follow_symlinks=False)
        target.chmod(source.stat().st_mode & 0o777)


def delete_folder(folder: Path) -> None:
    """Delete a folder and all below, as far as it is there."""
    shutil.rmtree(folder, ignore_errors=True)


def _is_linked(built: BuiltEnvironment) -> bool:
    try:
        return (built.folder / RECORD).stat().st_nlink > 1
    except OSError:
        return False


def _scan(folder: Path) -> list[BuiltEnvironment]:
    """What is whole, the longest unused first; removes what is not."""
    found = []
    for path in folder.glob("*/*"):
        try:
            record = msgspec.json.decode((path / RECORD).read_bytes(), type=EnvironmentRecord)
            used_at = (path / RECORD).stat().st_mtime
        except (OSError, msgspec.DecodeError):
            record, used_at = None, 0.0
        if record is None or "." in path.name:
            delete_folder(path)
            continue
        found.append((used_at, BuiltEnvironment(tenant=path.parent.name, folder=path, record=record)))
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def _flush_file_system(folder: Path) -> None:
    """One call for all files: each alone would cost a wait for the disk."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(at):
            raise OSError(ctypes.get_errno(), "syncfs")
    finally:
        os.close(at)
