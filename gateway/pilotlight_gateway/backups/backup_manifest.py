"""What a backup's folder has, each piece with its checksum; written last, so that a backup without it is none."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

FORMAT = 1
MANIFEST = "backup.json"
PIECE_BYTES = 2**20
"""How much of a file is in memory at a time."""
PieceKind = Literal["stream", "ledger", "blobs", "keys"]


class BackupRefused(Exception):
    """A backup cannot be made, or brought back; the message says why, and what to do."""


class BackupPiece(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a backup."""

    kind: PieceKind
    name: str
    """Of the stream; of the ledger's database (`sqlite`, `postgresql`); of what the folder holds."""
    file: str
    bytes: int
    sha256: str
    entries: int = 0
    """Messages or files in it, as far as that is known."""
    config: dict[str, Any] = {}
    """Of a stream."""
    state: dict[str, Any] = {}
    """Of a stream: its sequence numbers, for one."""

    @property
    def last_seq(self) -> int:
        return int(self.state.get("last_seq", 0))


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the folder has."""

    format: int = FORMAT
    release: str
    began_at: str
    """What was accepted before this instant is in the backup."""
    ended_at: str
    pieces: tuple[BackupPiece, ...]
    """In the order in which they were copied."""
    left_out: tuple[str, ...] = ()
    """What is not in it, in words."""

    def of_kind(self, kind: PieceKind) -> tuple[BackupPiece, ...]:
        return tuple(piece for piece in self.pieces if piece.kind == kind)

    @property
    def bytes(self) -> int:
        return sum(piece.bytes for piece in self.pieces)


def write_manifest(folder: Path, manifest: BackupManifest) -> None:
    """Complete the backup in `folder`."""
    path = folder / f"{MANIFEST}.new"
    with new_file(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    path.rename(folder / MANIFEST)


def read_manifest(folder: Path) -> BackupManifest:
    """What a backup has.

    Raises:
        BackupRefused: there is none, it is not complete, or of a later release.
    """
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=BackupManifest)
    except FileNotFoundError:
        raise BackupRefused(
            f"{folder} has no {MANIFEST}: it is no backup, or one that did not come to its end."
        ) from None
    except (msgspec.DecodeError, OSError) as error:
        raise BackupRefused(f"{folder / MANIFEST} cannot be read: {error}.") from None
    for piece in manifest.pieces:
        if piece.file in ("", "..") or Path(piece.file).name != piece.file:
            raise BackupRefused(f"{folder / MANIFEST} names {piece.file!r}, which is no file of the folder.")
    if manifest.format > FORMAT:
        raise BackupRefused(f"{folder} was made by a later release ({manifest.release}): restore it with that one.")
    return manifest


def verify_piece(folder: Path, piece: BackupPiece) -> None:
    """Read a piece's file whole.

    Raises:
        BackupRefused: it is not what was copied.
    """
    path = folder / piece.file
    try:
        size, digest = digest_of(path)
    except OSError as error:
        raise BackupRefused(f"{path} cannot be read ({error.strerror}): the backup is damaged.") from None
    if (size, digest) != (piece.bytes, piece.sha256):
        raise BackupRefused(f"{path} is not what was copied ({size} bytes, not {piece.bytes}, or other ones): damaged.")


def digest_of(path: Path) -> tuple[int, str]:
    """The size of a file, and its SHA-256."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while data := file.read(PIECE_BYTES):
            digest.update(data)
            size += len(data)
    return size, digest.hexdigest()


def new_file(path: Path) -> BinaryIO:
    """A file that was not there, closed to others.

    Raises:
        FileExistsError: there is one, or a link.
    """
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


class PieceWriter:
    """A new file of a backup, closed to others, which is on disk when the block ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        self._digest = hashlib.sha256()

    def __enter__(self) -> PieceWriter:
        self._file = new_file(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def write(self, data: bytes) -> int:
        """Append to it; as files do, it says how much."""
        self._file.write(data)
        self._digest.update(data)
        self.bytes += len(data)
        return len(data)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()
