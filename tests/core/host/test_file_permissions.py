"""What others of the machine may not look into."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pilotlight_core.host.file_permissions import OWNER_ONLY, WALK_ONLY, private_file, private_folder


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
