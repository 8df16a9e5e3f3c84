"""No version fills a node's disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pilotlight_core.model.spec import FileEntry
from pilotlight_runtime.containers.files.disk_room import RESERVE_BYTES, DiskRoom, NoDiskRoom, disk_room

BLOCK = 4096


def files(**sizes: int) -> list[FileEntry]:
    return [FileEntry(name, name, size) for name, size in sizes.items()]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    """With both sizes; what is empty, or nothing, always fits."""
    room = DiskRoom(tmp_path, lambda _: 10)
    with room.held("acme", files(a=4, b=6)):
        pass
    with pytest.raises(NoDiskRoom, match=r"has 11 bytes of files .* room for 10\."), room.held("acme", files(a=11)):
        pass
    with DiskRoom(tmp_path, lambda _: -1).held("acme", files(a=0)):
        pass


def test_what_is_being_fetched_has_its_room(tmp_path: Path) -> None:
    """Once for all who wait for it, less what is written; it is given back at the end."""
    room, path = DiskRoom(tmp_path, lambda _: 3 * BLOCK), tmp_path / "a.x"
    with room.held("acme", files(a=2 * BLOCK)):
        with room.held("acme", files(a=2 * BLOCK)):
            pass
        with pytest.raises(NoDiskRoom), room.held("rival", files(a=2 * BLOCK)):
            pass
        room.write("acme", "a", path)
        with pytest.raises(NoDiskRoom), room.held("rival", files(a=2 * BLOCK)):
            pass
        path.write_bytes(b"x" * BLOCK)
        with room.held("rival", files(a=2 * BLOCK)):
            pass
        path.unlink()
        room.settle("acme", "a")
        with room.held("rival", files(a=3 * BLOCK)):
            pass
    with room.held("rival", files(a=3 * BLOCK)):
        pass


def test_some_of_the_disk_stays_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A twentieth, of a large disk 1 GiB; the folder need not be there yet."""
    usage = type(shutil.disk_usage(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1000, 0, 500))
    assert disk_room(tmp_path / "not" / "there") == 450
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(2**50, 0, 2**40))
    assert disk_room(tmp_path) == 2**40 - RESERVE_BYTES
