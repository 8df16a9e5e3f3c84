"""Folders and files that other users of the machine may not look into.

What is there already is only ever closed further, never opened: an operator may have wanted it tighter.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

OWNER_ONLY = 0o700
WALK_ONLY = 0o711
"""Others may pass through to what they know by name: a container's uid reaches its code folder."""


def private_folder(folder: Path, mode: int) -> Path:
    """`folder`, made if it is missing (its parents too), open to others no further than `mode` says.

    A shared folder such as /tmp (sticky), and one that is another user's, is left as it is.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=mode, exist_ok=True)
    present = folder.stat()
    if present.st_uid == os.geteuid() and not present.st_mode & stat.S_ISVTX:
        _close(folder, present.st_mode, mode)
    return folder


def private_file(path: Path, mode: int = 0o600) -> Path:
    """`path`, made empty if it is missing, and open to others no further than `mode` says."""
    os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, mode))
    _close(path, path.stat().st_mode, mode)
    return path


def _close(path: Path, present: int, mode: int) -> None:
    present = stat.S_IMODE(present)
    if present & ~mode:
        path.chmod(present & mode)
