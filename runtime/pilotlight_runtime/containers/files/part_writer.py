"""A part of a file, written to its place as it comes, and checked."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from pilotlight_core.host.blobs.whole_reads import BlobSource, read_pieces
from pilotlight_core.model.spec import ArtifactPart
from pilotlight_runtime.containers.files.bundle import CannotVerify


def allocate(path: Path, size: int) -> None:
    """Give a file that size and its blocks, so that parts which come at once lie together on the disk.

    The file is there: a thread may begin when whoever wanted it has gone, and has deleted it.

    Raises:
        OSError: the disk is full, or the file is gone.
    """
    file = os.open(path, os.O_RDWR | os.O_TRUNC)
    try:
        if size:
            os.posix_fallocate(file, 0, size)
    finally:
        os.close(file)


class PartWriter:
    """Each method opens the file for itself: a thread is not cancelled with the fetch that it works for."""

    def __init__(self, path: Path, start: int, part: ArtifactPart, name: str) -> None:
        self._path = path
        self._start = start
        self._part = part
        self._name = name
        self._digest = hashlib.sha256()
        self._size = 0

    def write_all(self, source: BlobSource) -> None:
        """Write a whole content. Raises CannotVerify once it is too large, and OSError."""
        self._digest, self._size = hashlib.sha256(), 0
        file = os.open(self._path, os.O_WRONLY)
        try:
            read_pieces(source, lambda piece: self._put(file, piece))
        finally:
            os.close(file)

    def write(self, piece: bytes) -> None:
        """Write the next piece. Raises CannotVerify once it is too large, and OSError."""
        file = os.open(self._path, os.O_WRONLY)
        try:
            self._put(file, memoryview(piece))
        finally:
            os.close(file)

    def finish(self) -> None:
        """Raise CannotVerify unless what was written is what was signed."""
        if self._size != self._part.size or self._digest.hexdigest() != self._part.sha256:
            raise CannotVerify(f"{self._name} in the blob store is not what was signed.")

    def _put(self, file: int, piece: memoryview) -> None:
        if self._size + len(piece) > self._part.size:
            raise CannotVerify(f"{self._name} in the blob store is larger than what was signed.")
        self._digest.update(piece)
        while piece:
            count = os.pwrite(file, piece, self._start + self._size)
            self._size += count
            piece = piece[count:]
