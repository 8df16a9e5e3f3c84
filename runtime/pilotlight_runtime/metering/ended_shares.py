"""What ended calls used, noted before their callers are told, readable after the agent's death.

Meters are written to the usage log each second. What a call used is told with its answer, so an agent that is killed
in between would have told of more than is billed. `EndedShares` notes each ended call in a memory-mapped file, which
the kernel keeps when the process is killed. The next agent of the node writes what the log lacks (`usage_recovery`).

There are two files: one takes the calls since the last checkpoint, the other keeps those before until that checkpoint
is on disk. A note is `u32 length, u32 crc32, msgpack of EndedShare`; the first one of a file is the machine's boot.
Notes of another boot are ignored, since the kernel may not have written them back, and its clock is another.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
import structlog

from pilotlight_runtime.metering.metered_slice import EndedShare

log = structlog.get_logger(__name__)

FIRST_BYTES = 2**20
"""Of a file at first: some 4,000 calls."""
MOST_BYTES = 2**26
"""It doubles up to here; further calls between two checkpoints are not noted."""
NAMES = ("0", "1")
HEADER = struct.Struct("<II")
MAX_FRAME = 16 * 2**20
"""A longer length is a torn header."""


class EndedShares:
    """The notes of one agent in `folder`, which no other process uses; `boot` names the machine's boot.

    Raises:
        OSError: if the files cannot be made, for instance because the disk is full.
    """

    def __init__(self, folder: Path, boot: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file, self._other = (_NoteFile(folder / name, boot) for name in NAMES)
        self.missed = 0
        """Calls that were not noted, for lack of room."""

    def add(self, share: EndedShare) -> None:
        """Note what a call used; once this returns, a kill of the process does not lose it."""
        if not self._file.add(_encoder.encode(share)):
            if not self.missed:
                log.error("what calls used is not noted for lack of room: a kill of this agent would lose it")
            self.missed += 1

    def begin_window(self) -> None:
        """Note from now on what ends after a new checkpoint; the one before is on disk."""
        self._file, self._other = self._other, self._file
        self._file.clear()

    def close(self) -> None:
        self._file.close()
        self._other.close()


def shares_in(folder: Path, boot: str) -> list[EndedShare]:
    """The notes that the agent before has left, in no order; none if they are of another boot."""
    found: list[EndedShare] = []
    for name in NAMES:
        try:
            with (folder / name).open("rb") as file:
                notes = [data for data, _ in frames_in(file)]
        except FileNotFoundError:
            continue
        if notes[:1] == [boot.encode()]:
            found += map(_decoder.decode, notes[1:])
    return found


def frame_of(data: bytes) -> bytes:
    """`data` with its length and checksum before it."""
    return HEADER.pack(len(data), zlib.crc32(data)) + data


def frames_in(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """The whole payloads from the position of `file` on, each with the offset behind it."""
    while len(header := file.read(HEADER.size)) == HEADER.size:
        length, crc = HEADER.unpack(header)
        data = file.read(length) if length <= MAX_FRAME else b""
        if len(data) < length or zlib.crc32(data) != crc or not length:
            return
        yield data, file.tell()


class _NoteFile:
    def __init__(self, path: Path, boot: str) -> None:
        path.unlink(missing_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            # Allocated, not sparse: a write to a mapped page that finds the disk full would kill the process.
            os.posix_fallocate(self._descriptor, 0, FIRST_BYTES)
            self._map = mmap.mmap(self._descriptor, FIRST_BYTES)
        except OSError:
            os.close(self._descriptor)
            raise
        self._end = 0
        self.add(boot.encode())
        self._first = self._end

    def add(self, data: bytes) -> bool:
        """Append a note; False if there is no room."""
        frame, start = frame_of(data), self._end
        end = start + len(frame)
        if end > len(self._map) and not self._grow(end):
            return False
        self._map[start:end] = frame
        self._end = end
        return True

    def clear(self) -> None:
        """Remove all notes."""
        self._map[self._first : self._end] = bytes(self._end - self._first)
        self._end = self._first

    def close(self) -> None:
        self._map.close()
        os.close(self._descriptor)

    def _grow(self, wanted: int) -> bool:
        size = 2 * len(self._map)
        if not wanted <= size <= MOST_BYTES:
            return False
        try:
            os.posix_fallocate(self._descriptor, 0, size)
            self._map.resize(size)
        except OSError:
            return False
        return True


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(EndedShare)
