"""Copies of folders as one file each: blobs that are not in a bucket, and the platform's keys."""

from __future__ import annotations

import os
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from pilotlight_core.host.file_permissions import OWNER_ONLY, private_folder
from pilotlight_gateway.backups.backup_manifest import BackupPiece, BackupRefused, PieceKind, PieceWriter

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
                count += 1
    if not count:
        file.path.unlink()
        return None
    return BackupPiece(
        kind=kind, name=source.name, file=file.path.name, bytes=file.bytes, sha256=file.sha256, entries=count
    )


def restore_folder(piece: BackupPiece, folder: Path, target: Path) -> None:
    """Bring the files back. It blocks."""
    if piece.kind == "keys":
        private_folder(target, OWNER_ONLY)
    with tarfile.open(folder / piece.file, "r|") as archive:
        for member in archive:
            within = tarfile.data_filter(member, str(target))
            (target / within.name).unlink(missing_ok=True)  # it changed while it was copied, and was copied twice
            archive.extract(member, target, set_attrs=True, filter="data")
            archive.members.clear()  # type: ignore[attr-defined]


def refuse_folder(target: Path) -> None:
    """Check that there are no files in a folder. It blocks.

    Raises:
        BackupRefused: there are.
    """
    if (found := next(_files(target), None)) is not None:
        raise BackupRefused(f"{found} is there already: a backup is restored into an empty --state-dir only.")


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
