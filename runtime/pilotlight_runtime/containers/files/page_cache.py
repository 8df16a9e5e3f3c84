"""Files in the kernel's page cache: mapped, kept there where the kernel allows it, and how much of one is there.

A file has one copy in the page cache, whoever maps it. What the agent locks stays there for all containers that map the
same file, also when none of them runs.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from functools import cache
from pathlib import Path

POPULATE_READ = 22
"""MADV_POPULATE_READ, of Linux 5.14; an older kernel refuses it, and reads when it is asked to."""
WILL_NEED = 3
REFUSED = frozenset({errno.EPERM, errno.ENOMEM, errno.EAGAIN})
"""Why the kernel locks nothing: no right to, or more than RLIMIT_MEMLOCK allows."""
LOOKED_AT = 2**18
"""Pages at a time, of which each takes a byte: a tenant's file may have a hundred times as many."""
FAILED = ctypes.c_void_p(-1).value


class MappedFile:
    """A file in this process's memory, read-only, until `close`; its methods block, and may run in any thread."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self.is_locked = False
        file = os.open(path, os.O_RDONLY)
        try:
            self.size = os.fstat(file).st_size
            self._at = _map(file, self.size) if self.size else 0
        finally:
            os.close(file)

    def lock(self) -> bool:
        """Read it into the page cache, and keep it there; False: the kernel may drop it again."""
        if not self._at:
            return True
        libc = _libc()
        if libc.mlock(ctypes.c_void_p(self._at), ctypes.c_size_t(self.size)) == 0:
            self.is_locked = True
            return True
        if (why := ctypes.get_errno()) not in REFUSED:
            raise OSError(why, os.strerror(why))
        for advice in (POPULATE_READ, WILL_NEED):
            if libc.madvise(ctypes.c_void_p(self._at), ctypes.c_size_t(self.size), advice) == 0:
                break
        return False

    def resident(self) -> int:
        """The bytes of it that are in the page cache."""
        if not self._at:
            return 0
        pages, there = (ctypes.c_ubyte * min(LOOKED_AT, -(-self.size // mmap.PAGESIZE)))(), 0
        for start in range(0, self.size, LOOKED_AT * mmap.PAGESIZE):
            size = min(self.size - start, LOOKED_AT * mmap.PAGESIZE)
            if _libc().mincore(ctypes.c_void_p(self._at + start), ctypes.c_size_t(size), pages) != 0:
                return 0
            # The lowest bit says it; the others are reserved.
            there += bytes(pages[: -(-size // mmap.PAGESIZE)]).translate(_LOWEST).count(1)
        return min(self.size, there * mmap.PAGESIZE)

    def close(self) -> None:
        """Unmap it; nothing of it is locked any more."""
        if self._at:
            _libc().munmap(ctypes.c_void_p(self._at), ctypes.c_size_t(self.size))
        self._at, self.is_locked = 0, False


_LOWEST = bytes(byte & 1 for byte in range(256))


def resident_bytes(path: Path) -> int:
    """The bytes of a file that are in the page cache; 0: it is not there."""
    try:
        mapped = MappedFile(path)
    except OSError:
        return 0
    try:
        return mapped.resident()
    finally:
        mapped.close()


def _map(file: int, size: int) -> int:
    found = _libc().mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, file, ctypes.c_long(0))
    if found is None or found == FAILED:
        why = ctypes.get_errno()
        raise OSError(why, os.strerror(why))
    return int(found)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    return libc
