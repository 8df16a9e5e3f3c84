"""Whether this process has opened CUDA. A blank must not: it would occupy a GPU that nobody has bound."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

VISIBLE = "CUDA_VISIBLE_DEVICES"
LIBRARY = "libcuda.so.1"
NODES = "/dev/nvidia"
"""The device nodes that CUDA opens begin so."""
NOT_INITIALIZED = 3
"""The driver's answer to all but `cuInit`, until that was called."""
OPEN_FILES = Path("/proc/self/fd")


def has_opened_cuda() -> bool:
    """By the driver's own word, if its library is loaded here, and by the device nodes that are open."""
    return bool(os.environ.get(VISIBLE)) and (opens_nodes(open_files()) or answers_calls(device_count))


def open_files(folder: Path = OPEN_FILES) -> list[str]:
    found = []
    for entry in folder.iterdir():
        try:
            found.append(str(entry.readlink()))
        except OSError:  # that of the folder itself is closed by now
            continue
    return found


def opens_nodes(files: Iterable[str]) -> bool:
    """Whether one of the open files is a GPU's."""
    return any(name.startswith(NODES) for name in files)


def answers_calls(count: Callable[[], int]) -> bool:
    """Whether the driver answers calls that need `cuInit`; `count` gives its code, or raises OSError without one."""
    try:
        return count() != NOT_INITIALIZED
    except (OSError, AttributeError):
        return False


def device_count() -> int:
    """The code of `cuDeviceGetCount`. Raises OSError if nobody has loaded the library: then nobody can have used it."""
    import ctypes

    library = ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    return int(library.cuDeviceGetCount(ctypes.byref(ctypes.c_int())))
