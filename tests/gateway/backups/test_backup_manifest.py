"""A backup says what it has, and what of it is damaged."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pilotlight_gateway.backups.backup_manifest import (
    FORMAT,
    MANIFEST,
    BackupManifest,
    BackupPiece,
    BackupRefused,
    PieceWriter,
    read_manifest,
    verify_piece,
    write_manifest,
)

STATE = {"messages": 2, "last_seq": 7}


def piece(folder: Path) -> BackupPiece:
    with PieceWriter(folder / "USAGE.stream") as file:
        file.write(b"one")
        file.write(b"other")
    return BackupPiece(
        kind="stream", name="USAGE", file="USAGE.stream", bytes=file.bytes, sha256=file.sha256, state=STATE
    )


def manifest(*pieces: BackupPiece) -> BackupManifest:
    return BackupManifest(release="0.1.0", began_at="2026-11-27", ended_at="2026-11-27", pieces=pieces)


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Closed to others, like all files of a backup; its pieces are whole."""
    made = manifest(piece(tmp_path))
    write_manifest(tmp_path, made)

    found = read_manifest(tmp_path)

    assert found == made
    assert (found.bytes, found.of_kind("ledger"), found.pieces[0].last_seq) == (8, (), 7)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    verify_piece(tmp_path, found.pieces[0])


@pytest.mark.parametrize("data", [b"oneothes", b"oneothe", None], ids=["other", "shorter", "gone"])
def test_a_damaged_piece_is_named(tmp_path: Path, data: bytes | None) -> None:
    """Whatever has become of it."""
    made = piece(tmp_path)
    (tmp_path / made.file).unlink()
    if data is not None:
        (tmp_path / made.file).write_bytes(data)

    with pytest.raises(BackupRefused, match=r"USAGE.stream .*damaged"):
        verify_piece(tmp_path, made)


@pytest.mark.parametrize("file", ["../keys", "/etc/passwd", "a/b", "..", ".", ""])
def test_a_piece_is_in_the_folder(tmp_path: Path, file: str) -> None:
    """A manifest that names another file is not followed."""
    write_manifest(tmp_path, manifest(msgspec.structs.replace(piece(tmp_path), file=file)))

    with pytest.raises(BackupRefused, match="no file of the folder"):
        read_manifest(tmp_path)


def test_a_file_of_another_is_not_written_to(tmp_path: Path) -> None:
    """Nor what a link leads to: somebody else would read the copy."""
    (tmp_path / "USAGE.stream").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(FileExistsError):
        piece(tmp_path)

    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_without_a_manifest_is_no_backup(tmp_path: Path) -> None:
    """Nor one that cannot be read, or is of a later release."""
    with pytest.raises(BackupRefused, match="did not come to its end"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_bytes(b"{")
    with pytest.raises(BackupRefused, match="cannot be read"):
        read_manifest(tmp_path)
    later = msgspec.structs.replace(manifest(), format=FORMAT + 1, release="9.0")
    write_manifest(tmp_path, later)
    with pytest.raises(BackupRefused, match=r"later release \(9.0\)"):
        read_manifest(tmp_path)
