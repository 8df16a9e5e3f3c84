"""Copies of folders as one file each: blobs that are not in a bucket, and the platform's keys."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from pilotlight_core.host.blobs.folder_blobs import READ_ONLY
from pilotlight_core.host.file_permissions import OWNER_ONLY, WALK_ONLY, private_folder
from pilotlight_gateway.backups.backup_manifest import PIECE_BYTES, BackupPiece, BackupRefused, PieceKind, PieceWriter

CLOCK_S = 2.0
"""By so much a file system's times may be behind."""


def copy_folder(kind: PieceKind, source: Path, folder: Path) -> BackupPiece | None:
    """Copy the files below `source` into one of `folder`; None: there are none. It blocks.

    What goes meanwhile is left out, and what comes meanwhile is looked for once more: a blob that is sealed while the
    folder is walked through has another name, and may have been in neither form where it was looked for.
    """
    count, began, fresh = 0, time.time() - CLOCK_S, set[Path]()
    with (
        PieceWriter(folder / f"{kind}.tar") as file,
        tarfile.open(fileobj=cast("IO[bytes]", file), mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for is_again in (False, True):
            for path in _files(source):
                try:
                    opened = path.open("rb")
                except FileNotFoundError:
                    continue
                with opened:
                    is_fresh = os.fstat(opened.fileno()).st_ctime >= began
                    if is_again and (path in fresh or not is_fresh):
                        continue
                    if is_fresh:
                        fresh.add(path)
                    archive.addfile(archive.gettarinfo(arcname=str(path.relative_to(source)), fileobj=opened), opened)
                archive.members.clear()  # type: ignore[attr-defined] # it would keep one of each file
                archive.inodes.clear()  # type: ignore[attr-defined] # nor take a new file for one whose inode it has
                count += 1
    if not count:
        file.path.unlink()
        return None
    return BackupPiece(
        kind=kind, name=source.name, file=file.path.name, bytes=file.bytes, sha256=file.sha256, entries=count
    )


def restore_folder(piece: BackupPiece, folder: Path, target: Path) -> None:
    """Bring the files back, closed to others as the platform itself makes them. It blocks.

    Raises:
        BackupRefused: the archive has what no copy of a folder has.
    """
    closed = OWNER_ONLY if piece.kind == "keys" else WALK_ONLY
    private_folder(target, closed)
    with tarfile.open(folder / piece.file, "r|") as archive:
        for member in archive:
            data = archive.extractfile(member) if member.isreg() else None
            if data is None or not _is_confined(member.name):
                raise BackupRefused(f"{folder / piece.file} has {member.name!r}, which is no file of a folder.")
            path = target / member.name
            for parent in reversed(path.relative_to(target).parents):
                private_folder(target / parent, closed)
            _restore_file(path, data, READ_ONLY if piece.kind == "blobs" else member.mode & ~0o022, member.mtime)
            archive.members.clear()  # type: ignore[attr-defined]


def refuse_folder(target: Path) -> None:
    """Check that there are no files in a folder. It blocks.

    Raises:
        BackupRefused: there are.
    """
    if (found := next(_files(target), None)) is not None:
        raise BackupRefused(f"{found} is there already: a backup is restored into an empty --state-dir only.")


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder, onerror=_raise):
        for name in names:
            path = Path(parent, name)
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path


def _raise(error: OSError) -> None:
    """What may not be read is not left out of a copy silently; what has gone is."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _is_confined(name: str) -> bool:
    return not name.startswith("/") and ".." not in Path(name).parts


def _restore_file(path: Path, data: IO[bytes], mode: int, mtime: float) -> None:
    """Write a file that is on disk afterwards, as old as it was: what nothing names is deleted by its age."""
    path.unlink(missing_ok=True)  # a file that changed while it was copied may be in the archive twice
    with path.open("xb") as file:
        os.fchmod(file.fileno(), 0o600)
        shutil.copyfileobj(data, file, PIECE_BYTES)
        file.flush()
        os.utime(file.fileno(), (mtime, mtime))
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
