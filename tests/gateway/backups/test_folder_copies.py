"""Folders are copied as one file, and come back as they were."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pilotlight_gateway.backups.backup_manifest import BackupPiece, BackupRefused, verify_piece
from pilotlight_gateway.backups.folder_copies import copy_folder, refuse_folder, restore_folder


def modes(folder: Path) -> dict[str, int]:
    paths = (folder, *folder.rglob("*"))
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in paths}


def test_a_folder_comes_back_as_it_was(tmp_path: Path) -> None:
    """Files of folders, with their modes; links are none of a platform's."""
    source = tmp_path / "keys"
    (source / "acme").mkdir(parents=True)
    for name, data, mode in (("private", b"k" * 100, 0o600), ("acme/blob", b"b" * 3_000_000, 0o444)):
        (source / name).write_bytes(data)
        (source / name).chmod(mode)
    (source / "link").symlink_to("/etc/passwd")
    os.utime(source / "private", (1_000, 1_000))

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
    assert found["private"].stat().st_mtime == 1_000
    assert modes(target) == {".": 0o700, "private": 0o600, "acme": 0o700, "acme/blob": 0o444}
    with pytest.raises(BackupRefused, match="is there already"):
        refuse_folder(target)


def test_what_comes_under_another_name_while_a_folder_is_copied_is_in_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blob that is sealed meanwhile: its sealed form came where the copy had looked, and then the clear one went."""
    source, target = tmp_path / "blobs", tmp_path / "target"
    for folder in ("aa", "ff"):
        (source / folder).mkdir(parents=True)
    walk = os.walk
    first, last = (Path(parent) for parent, folders, _ in walk(source) if not folders)
    (first / "other").write_bytes(b"other")
    (last / "clear").write_bytes(b"content")

    def sealed_meanwhile(folder: Path, **options: Any) -> Iterator[Any]:
        for found in walk(folder, **options):
            yield found
            if Path(found[0]) == first and (last / "clear").exists():
                (first / "sealed").write_bytes(b"sealed")
                (last / "clear").unlink()

    with monkeypatch.context() as patched:
        patched.setattr(os, "walk", sealed_meanwhile)
        piece = copy_folder("blobs", source, tmp_path)
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


def test_restored_blobs_are_not_listed_by_others(tmp_path: Path) -> None:
    """Who knows a blob's name may read it, as in the store that was copied; files with one content are copied whole."""
    source = tmp_path / "blobs"
    (source / "acme" / "ab").mkdir(parents=True)
    (source / "acme" / "ab" / "abc").write_bytes(b"code")
    (source / "store-id").hardlink_to(source / "acme" / "ab" / "abc")
    piece = copy_folder("blobs", source, tmp_path)
    assert piece is not None

    restore_folder(piece, tmp_path, tmp_path / "new")

    assert modes(tmp_path / "new") == {
        ".": 0o711, "store-id": 0o444, "acme": 0o711, "acme/ab": 0o711, "acme/ab/abc": 0o444,
    }  # fmt: skip
    assert (tmp_path / "new" / "store-id").stat().st_nlink == 1


def test_of_a_file_that_is_in_an_archive_twice_the_later_is_restored(tmp_path: Path) -> None:
    """It changed while it was copied."""
    (tmp_path / "one").write_bytes(b"one")
    (tmp_path / "other").write_bytes(b"other")
    with tarfile.open(tmp_path / "blobs.tar", "w") as archive:
        for name in ("one", "other"):
            archive.add(tmp_path / name, arcname="acme/blob")
    piece = BackupPiece(kind="blobs", name="blobs", file="blobs.tar", bytes=0, sha256="")

    restore_folder(piece, tmp_path, tmp_path / "new")

    assert (tmp_path / "new" / "acme" / "blob").read_bytes() == b"other"


@pytest.mark.parametrize("name", ["../out", "/out", "acme/../../out", "link"])
def test_an_archive_writes_nothing_elsewhere(tmp_path: Path, name: str) -> None:
    """Nor does it make links."""
    with tarfile.open(tmp_path / "keys.tar", "w") as archive:
        member = tarfile.TarInfo(name)
        if name == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(member)
    piece = BackupPiece(kind="keys", name="keys", file="keys.tar", bytes=0, sha256="")

    with pytest.raises(BackupRefused, match="no file of a folder"):
        restore_folder(piece, tmp_path, tmp_path / "target")

    assert list((tmp_path / "target").iterdir()) == []


def test_what_may_not_be_read_is_not_left_out(tmp_path: Path) -> None:
    """A copy without it would look whole; a folder that goes meanwhile is left out."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        copy_folder("blobs", tmp_path / "file", tmp_path)
