"""Bundles: the files of an app, by content."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container
from pathlib import Path

import msgspec

from pilotlight.packing.target import DeployTarget
from pilotlight.packing.walk import PackError, files_below
from pilotlight_core.model.spec import MAX_BUNDLE_BYTES, MAX_BUNDLE_FILES, FileEntry

SHOWN = 5


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """The packed files; `paths` maps each sha256 to a file on this machine."""

    files: tuple[FileEntry, ...]
    paths: dict[str, Path]
    private_keys: tuple[str, ...] = ()
    """Files that are not packed since they are keys."""

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(entry.size for entry in self.files)


def make_bundle(target: DeployTarget, leave_out: Container[Path] = ()) -> Bundle:
    """Pack the folder of a target, without `leave_out`. The same files give the same Bundle.

    Raises:
        PackError: naming the files that cannot be packed, or the largest ones.
    """
    found: list[tuple[Path, int]] = []
    total, keys = 0, list[str]()
    for path in files_below(target.folder, leave_out, private_keys=keys):
        found.append((path, path.stat().st_size))
        total += found[-1][1]
        if len(found) > MAX_BUNDLE_FILES:
            raise _too_many(found, target)
    if total > MAX_BUNDLE_BYTES:
        raise _too_large(found, total, target)
    paths: dict[str, Path] = {}
    entries = []
    for path, _ in found:
        entry = _entry(path, target.root)
        entries.append(entry)
        paths.setdefault(entry.sha256, path)
    files = tuple(sorted(entries, key=lambda entry: entry.path))
    return Bundle(files=files, paths=paths, private_keys=tuple(keys))


def _entry(path: Path, root: Path) -> FileEntry:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
    except OSError as error:
        raise PackError(f"{path} cannot be read: {error.strerror}.", field="files") from error
    return FileEntry(path=path.relative_to(root).as_posix(), sha256=digest, size=size)


def _too_large(found: list[tuple[Path, int]], total: int, target: DeployTarget) -> PackError:
    largest = sorted(found, key=lambda pair: -pair[1])[:SHOWN]
    shown = ", ".join(f"{path.relative_to(target.folder)} ({_megabytes(size)})" for path, size in largest)
    return PackError(
        f"{target.folder} is {_megabytes(total)}, more than the {_megabytes(MAX_BUNDLE_BYTES)} of a bundle. "
        f"The largest files: {shown}. Name what is not needed in .pilotlightignore, and models in artifacts=.",
        field="files",
    )


def _too_many(found: list[tuple[Path, int]], target: DeployTarget) -> PackError:
    folders = Counter(path.parent.relative_to(target.folder).as_posix() for path, _ in found)
    shown = ", ".join(f"{name}/ ({count}+)" for name, count in folders.most_common(SHOWN))
    return PackError(
        f"{target.folder} has more than the {MAX_BUNDLE_FILES} files of a bundle. The fullest folders: {shown}. "
        "Name what is not needed in .pilotlightignore.",
        field="files",
    )


def _megabytes(size: int) -> str:
    return f"{size / 10**6:.1f} MB"
