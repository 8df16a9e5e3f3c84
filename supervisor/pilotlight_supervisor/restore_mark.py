"""The mark of a restore that has begun: a state folder that has one is a part of a platform, and is not started."""

from __future__ import annotations

import os
from pathlib import Path

from pilotlight_core.host.file_permissions import WALK_ONLY, private_file, private_folder

MARK = "restore.incomplete"


def incomplete_restore(state: Path) -> str:
    """Why nothing is to be started on, or restored into, the state folder; "": nothing is against it."""
    path = state / MARK
    try:
        copy = path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return (
        f"{path}: the restore of {copy} did not come to its end, and what is there is a part of it only. Restore it "
        "again into an empty --state-dir, and where they are elsewhere into an empty bus, database and blob store."
    )


def begin_restore(state: Path, copy: Path) -> None:
    """Leave the mark, before anything is written."""
    path = private_file(private_folder(state, WALK_ONLY) / MARK)
    with path.open("w") as file:
        file.write(f"{copy}\n")
        file.flush()
        os.fsync(file.fileno())
    opened = os.open(state, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def end_restore(state: Path) -> None:
    """Remove the mark, once all that was written is on disk: the streams too, of which nats-server does not say it."""
    os.sync()
    (state / MARK).unlink()
