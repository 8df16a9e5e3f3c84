"""Folders are copied as one file, and come back as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_gateway.backups.backup_manifest import BackupRefused, verify_piece
from pilotlight_gateway.backups.folder_copies import copy_folder, refuse_folder, restore_folder


def test_a_folder_comes_back_as_it_was(tmp_path: Path) -> None:
    """Files of folders, with their modes; links are none of a platform's."""
    source = tmp_path / "keys"
    (source / "acme").mkdir(parents=True)
    for name, data, mode in (("private", b"k" * 100, 0o600), ("acme/blob", b"b" * 3_000_000, 0o444)):
        (source / name).write_bytes(data)
        (source / name).chmod(mode)
    (source / "link").symlink_to("/etc/passwd")

    piece = copy_folder("keys", source, tmp_path)
    assert piece is not None
    assert (piece.entries, piece.file) == (2, "keys.tar")
    verify_piece(tmp_path, piece)
    target = tmp_path / "target"
    refuse_folder(target)
    restore_folder(piece, tmp_path, target)

    found = {str(path.relative_to(target)): path for path in target.rglob("*") if path.is_file()}
    assert {name: path.read_bytes() for name, path in found.items()} == {
        "private": b"k" * 100,
        "acme/blob": b"b" * 3_000_000,
    }
    assert found["private"].stat().st_mode & 0o777 == 0o600
    assert target.stat().st_mode & 0o777 == 0o700
    with pytest.raises(BackupRefused, match="is there already"):
        refuse_folder(target)


def test_a_folder_without_files_is_not_copied(tmp_path: Path) -> None:
    """Nor one that is not there."""
    (tmp_path / "empty").mkdir()
    for name in ("empty", "none"):
        assert copy_folder("blobs", tmp_path / name, tmp_path) is None
