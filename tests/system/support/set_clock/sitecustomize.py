"""Lets the wall clock of a process show what a test sets: interpreters import this before all else.

`SET_CLOCK_FILE` is a file with a number of seconds, which are added to the time of the day. The monotonic clock stays
as it is, as it does when an operator or a time server sets the clock of a machine.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path

SIZE = 8


def _install(path: str) -> None:
    with Path(path).open("rb") as file:
        shown = mmap.mmap(file.fileno(), SIZE, access=mmap.ACCESS_READ)
    real, real_ns = time.time, time.time_ns
    read = struct.Struct("=d").unpack_from
    time.time = lambda: real() + read(shown)[0]
    time.time_ns = lambda: real_ns() + round(read(shown)[0] * 1e9)


if path := os.environ.get("SET_CLOCK_FILE"):
    _install(path)
