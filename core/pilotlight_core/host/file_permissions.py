"""Folders and files that are private to the user of this process.

Permissions of existing ones are only reduced, since an operator may have chosen tighter ones. A key that others may
have read is another matter: closing it would hide that, so it is not used (`why_open`).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

OWNER_ONLY = 0o700
WALK_ONLY = 0o711
"""Others may pass through to known names: a container's uid reaches its code folder."""
OTHERS, GROUP_AND_OTHERS = 0o007, 0o077


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


def why_open(path: Path) -> str:
    """Why a file with a key is not used, as a sentence: not its owner alone may read or write it; "": it is closed.

    One of another user, such as root's with a group in which this process is, may be open to it. Raises OSError.
    """
    present = path.stat()
    refused = GROUP_AND_OTHERS if present.st_uid == os.geteuid() else OTHERS
    if not present.st_mode & refused:
        return ""
    mode = stat.S_IMODE(present.st_mode)
    return (
        f"{path} has mode {mode:04o}, so others of this machine may have its key: if nobody has read it, close it "
        f"(chmod {mode & ~refused:o} {path}), else replace it."
    )


def _close(path: Path, present: int, mode: int) -> None:
    present = stat.S_IMODE(present)
    if present & ~mode:
        path.chmod(present & mode)
