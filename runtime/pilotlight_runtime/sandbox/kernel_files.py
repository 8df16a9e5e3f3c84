"""Files that the kernel makes up as they are read: of /proc, and of control groups."""

from __future__ import annotations

import os
from pathlib import Path

AT_ONCE = 64 * 1024
"""Bytes of one read; more than nearly all of them have."""


def read_kernel_file(path: str | Path) -> str:
    """What such a file says. An agent reads ten of each container each second, at a third of what `read_text` costs.

    Raises:
        OSError: it is not there any more, or cannot be read.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        parts: list[bytes] = []
        while part := os.read(file, AT_ONCE):
            parts.append(part)
    finally:
        os.close(file)
    return b"".join(parts).decode()
