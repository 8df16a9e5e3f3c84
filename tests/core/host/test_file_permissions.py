"""What others of the machine may not look into."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pilotlight_core.host.file_permissions import OWNER_ONLY, WALK_ONLY, private_file, private_folder, why_open


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("before", "after"), [(None, 0o711), (0o755, 0o711), (0o700, 0o700), (0o1777, 0o1777)])
def test_a_folder_is_closed_and_never_opened(tmp_path: Path, before: int | None, after: int) -> None:
    """A new one, an open one, one that is tighter already, and a shared one, which is not ours to close."""
    folder = tmp_path / "a" / "b"
    if before is not None:
        folder.mkdir(parents=True)
        folder.chmod(before)

    assert private_folder(folder, WALK_ONLY) == folder
    assert mode(folder) == after


def test_a_file_is_its_owners(tmp_path: Path) -> None:
    """It is made if it is missing, closed if it is open, and keeps its content."""
    path = private_folder(tmp_path / "x", OWNER_ONLY) / "file"
    assert mode(private_file(path)) == 0o600

    path.write_text("kept")
    path.chmod(0o664)

    assert mode(private_file(path)) == 0o600
    assert path.read_text() == "kept"


@pytest.mark.parametrize(
    ("mode", "of_ours", "of_roots"),
    [
        (0o600, "", ""),
        (0o400, "", ""),
        (0o440, "chmod 400", ""),  # a secret of Kubernetes: root's, and its pod is in the group
        (0o640, "chmod 600", ""),
        (0o644, "chmod 600", "chmod 640"),
        (0o602, "chmod 600", "chmod 600"),
    ],
)
def test_a_key_that_others_may_have_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, of_ours: str, of_roots: str
) -> None:
    """The sentence says what to do; it is not closed in passing, since that would hide that somebody may have it."""
    path, us = tmp_path / "key", os.geteuid()
    path.touch()
    path.chmod(mode)

    for user, expected in ((us, of_ours), (us + 1, of_roots)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        why = why_open(path)
        assert bool(why) is bool(expected)
        assert f"{path} has mode {mode:04o}" in why or not why
        assert expected in why
    assert stat.S_IMODE(path.stat().st_mode) == mode
