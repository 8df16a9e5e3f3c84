"""Folders and files that are private to the user of this process.

Permissions of existing ones are only reduced, since an operator may have chosen tighter ones.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

OWNER_ONLY = 0o700
WALK_ONLY = 0o711
"""Others may pass through to known names: a container's uid reaches its code folder."""


def private_folder(folder: Path, mode: int) -> Path:
    """`folder`, created with its parents if missing, with at most the permissions of `mode` for others.

    A shared folder such as /tmp (sticky), and one of another user, is left as it is.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=mode, exist_ok=True)
    present = folder.stat()
    if present.st_uid == os.geteuid() and not present.st_mode & stat.S_ISVTX:
        _close(folder, present.st_mode, mode)
    return folder


def private_file(path: Path, mode: int = 0o600) -> Path:
    """`path`, created empty if missing, with at most the permissions of `mode`."""
    os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, mode))
    _close(path, path.stat().st_mode, mode)
    return path


def _close(path: Path, present: int, mode: int) -> None:
    present = stat.S_IMODE(present)
    if present & ~mode:
        path.chmod(present & mode)
