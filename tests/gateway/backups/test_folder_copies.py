"""Folders are copied as one file, and come back as they were."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotlight_gateway.backups.backup_manifest import BackupPiece, BackupRefused, verify_piece
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


def test_what_comes_under_another_name_while_a_folder_is_copied_is_in_the_copy(tmp_path: Path) -> None:
    """A blob that is sealed meanwhile: its sealed form came where the copy had looked, and then the clear one went."""
    source, target = tmp_path / "blobs", tmp_path / "target"
    for folder in ("aa", "ff"):
        (source / folder).mkdir(parents=True)
    first, last = (source / name for name in [path.name for path in source.rglob("*")])
    (first / "other").write_bytes(b"other")
    (last / "clear").write_bytes(b"content")

    class Sealed(type(source)):  # type: ignore[misc] # whose files change at the first look
        def rglob(self, pattern: str) -> Iterator[Path]:
            for number, path in enumerate(list(source.rglob(pattern))):
                if number == 1 and (last / "clear").exists():
                    (first / "sealed").write_bytes(b"sealed")
                    (last / "clear").unlink()
                yield path

    piece = copy_folder("blobs", Sealed(source), tmp_path)
    assert piece is not None
    assert piece.entries == 2
    restore_folder(piece, tmp_path, target)
    assert {path.name for path in target.rglob("*") if path.is_file()} == {"other", "sealed"}


def test_a_file_that_is_copied_twice_comes_back_as_it_was_last(tmp_path: Path) -> None:
    """Though it may not be written to."""
    with tarfile.open(tmp_path / "blobs.tar", "w") as archive:
        for data in (b"1", b"2"):
            member = tarfile.TarInfo("acme/blob")
            member.size, member.mode = len(data), 0o444
            archive.addfile(member, io.BytesIO(data))
    piece = BackupPiece(kind="blobs", name="blobs", file="blobs.tar", bytes=0, sha256="", entries=2)
    restore_folder(piece, tmp_path, tmp_path / "target")
    assert (tmp_path / "target" / "acme" / "blob").read_bytes() == b"2"


def test_a_folder_without_files_is_not_copied(tmp_path: Path) -> None:
    """Nor one that is not there."""
    (tmp_path / "empty").mkdir()
    for name in ("empty", "none"):
        assert copy_folder("blobs", tmp_path / name, tmp_path) is None
