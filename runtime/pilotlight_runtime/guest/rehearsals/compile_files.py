"""What compilers keep in files: laid out before the function is imported, and found again once it is warm.

Inductor, Triton and the CUDA driver look where a variable says. That is a folder of the container's own, so that what
calls make of it later reaches nobody: only what was there when the container became ready is kept for the next one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

VARIABLES = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "CUDA_CACHE_PATH": "cuda"}
"""And the folder of each."""
PASSING = (".lock", ".tmp")
"""Endings of files that nobody needs later."""
LONGEST_PATH = 512
"""Of a file that agents take; one of another name, such as no text, must not end a start."""
ROOM_PART = 2
"""What was kept may fill one part in so many of the room for it: the rest is the function's."""


class _Seen(NamedTuple):
    size: int
    changed_ns: int


class CompileFiles:
    """`kept` is the folder of what another container has compiled, `folder` this one's; both may not be there."""

    def __init__(self, kept: str, folder: str) -> None:
        self._kept = Path(kept)
        self._folder = Path(folder)
        self._laid_out: dict[str, _Seen] = {}

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """The variables to set, without those that the function sets itself."""
        return {name: str(self._folder / sub) for name, sub in VARIABLES.items() if name not in given}

    def lay_out(self) -> int:
        """Make the folders, and copy what was kept, as far as there is room for all of it; the number of files.

        They are copies since compilers write into some of them, and what was kept is read-only.
        """
        files = dict(_files(self._kept))
        try:
            for folder in VARIABLES.values():  # not every compiler makes its own
                (self._folder / folder).mkdir(parents=True, exist_ok=True)
            if not files:
                return 0
            room = os.statvfs(self._folder)
            if sum(seen.size for seen in files.values()) * ROOM_PART > room.f_bavail * room.f_frsize:
                return 0
            for path in files:
                target = self._folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes((self._kept / path).read_bytes())
                status = target.stat()
                self._laid_out[path] = _Seen(status.st_size, status.st_mtime_ns)
        except OSError:
            pass  # it is only slower without them
        return len(self._laid_out)

    def fresh(self) -> Iterator[tuple[str, Path]]:
        """Files that are new, or have changed: each by its path below the folder, and in full."""
        for path, seen in sorted(_files(self._folder)):
            can_travel = len(path) <= LONGEST_PATH and path.isprintable()
            if can_travel and self._laid_out.get(path) != seen and not path.endswith(PASSING):
                yield path, self._folder / path


def _files(folder: Path) -> Iterator[tuple[str, _Seen]]:
    """The regular files of a folder, perhaps none, by their paths below it."""
    for root, _, names in os.walk(folder):
        for name in names:
            whole = Path(root, name)
            try:
                status = whole.lstat()
            except OSError:
                continue  # a compiler's own, gone meanwhile
            if stat.S_ISREG(status.st_mode):
                yield str(whole.relative_to(folder)), _Seen(status.st_size, status.st_mtime_ns)
