"""Parts of a file as memory, so that what is read from a network lies in the page cache at once."""

from __future__ import annotations

import mmap
import os
from pathlib import Path


def allocate(path: Path, size: int) -> None:
    """Make a file of that size, whose blocks are there: writing to its memory never lacks room then.

    Raises:
        OSError: the disk is full.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        if size:
            os.posix_fallocate(file, 0, size)
    finally:
        os.close(file)


def memory_of(path: Path, start: int, size: int) -> memoryview:
    """A part of a file, to be written to. It is unmapped when nothing holds it any more.

    A thread that still writes when its fetch is cancelled has it as long, also if the file is deleted.
    """
    if not size:
        return memoryview(bytearray())
    before = start % mmap.ALLOCATIONGRANULARITY
    file = os.open(path, os.O_RDWR)
    try:
        mapped = mmap.mmap(file, before + size, offset=start - before)
    finally:
        os.close(file)
    return memoryview(mapped)[before:]
