"""Writes the files that a builder sends below a folder, within bounds. What comes is believed in nothing.

No link is ever made there, so a path of plain names below the folder stays below it.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import BinaryIO

from pilotlight_runtime.builder.build_frames import BadBuild, BuiltPiece

FILE_MODE, PROGRAM_MODE = 0o444, 0o555
MOST_FILES = 100_000
RESERVE_PART, RESERVE_BYTES = 20, 2**30
"""Of the disk a twentieth is left free, and no more than this, as beside the files of versions."""
FILE_BYTES = 4_096
"""What a file or a folder counts beside its bytes, as on a disk: a hundred thousand empty ones are not free."""
LONGEST_PATH = 1_024
LONGEST_NAME = 255
DEEPEST = 40


class BuiltFiles:
    """The files of one environment; use in one thread."""

    def __init__(self, into: Path, *, most_bytes: int, most_files: int = MOST_FILES, room: int | None = None) -> None:
        """`room`: what the disk has, beside what is left free of it; None: as it is when a piece comes."""
        self._into = into
        self._most_bytes = most_bytes
        self._most_files = most_files
        self._room = room
        self._made = {into}
        self._open: tuple[str, BinaryIO] | None = None
        self.files = 0
        self.bytes = 0
        self._folders = 0

    @property
    def on_disk(self) -> int:
        """What all of it takes there, rather more than less."""
        return self.bytes + FILE_BYTES * (self.files + self._folders)

    def add(self, piece: BuiltPiece) -> None:
        """Write a piece.

        Raises:
            BadBuild: its path is none, or there are too many files or bytes. OSError: the disk has no room.
        """
        self.bytes += len(piece.data)
        if self.bytes > self._most_bytes:
            raise BadBuild(f"the packages are larger than {self._most_bytes >> 20} MiB, which is the most here")
        # Anew for each piece, since others write to the disk too.
        room = disk_left(self._into) if self._room is None else self._room - self.bytes + len(piece.data)
        if len(piece.data) > room:
            # No fault of the packages, which may find room on another node.
            raise OSError(
                errno.ENOSPC,
                f"the disk of this node has room for {max(0, self.bytes - len(piece.data) + room) >> 20} MiB",
            )
        if self._open is None:
            self._open = piece.path, self._create(piece)
        path, file = self._open
        if path != piece.path:
            raise BadBuild(f"{piece.path!r} comes within {path!r}")
        file.write(piece.data)
        if piece.is_last:
            file.close()
            self._open = None

    def finish(self) -> None:
        """Raise BadBuild if a file is not whole."""
        if self._open is not None:
            raise BadBuild(f"{self._open[0]!r} is not whole")

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()

    def _create(self, piece: BuiltPiece) -> BinaryIO:
        self.files += 1
        if self.files > self._most_files:
            raise BadBuild(f"the packages have more than {self._most_files} files, which is the most here")
        if why := path_fault(piece.path):
            raise BadBuild(f"a package has the file {piece.path[:200]!r}: {why}")
        target = self._into / piece.path
        if target.parent not in self._made:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._made.update(self._into / each for each in Path(piece.path).parents)
            self._folders = len(self._made) - 1
            if len(self._made) > self._most_files:
                raise BadBuild(f"the packages have more than {self._most_files} folders, which is the most here")
        mode = PROGRAM_MODE if piece.is_program else FILE_MODE
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        return os.fdopen(fd, "wb")


def disk_left(folder: Path) -> int:
    """The bytes that may be written to the disk of a folder, or of what is above it."""
    while not folder.exists():
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    return usage.free - min(usage.total // RESERVE_PART, RESERVE_BYTES)


def path_fault(path: str) -> str:
    """Why a path is none below a folder, as the rest of a sentence; "" if it is one."""
    names = path.split("/")
    if len(path) > LONGEST_PATH or len(names) > DEEPEST or any(len(name.encode()) > LONGEST_NAME for name in names):
        return "it is too long"
    if "\0" in path or any(name in ("", ".", "..") for name in names):
        return "it leads elsewhere"
    return ""
