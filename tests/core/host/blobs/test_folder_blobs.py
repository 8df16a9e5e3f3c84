"""What only a folder promises: read-only files, and nothing half written under a blob's name."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilotlight_core.host.blobs import BlobsDown, FolderBlobs

SHA = hashlib.sha256(b"content").hexdigest()


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_a_blob_is_a_read_only_file_to_link(tmp_path: Path) -> None:
    """Mode 0444, at the path that an agent links."""
    store = FolderBlobs(tmp_path)
    await store.put("default", SHA, b"content")

    path = store.path("default", SHA)

    assert path.read_bytes() == b"content"
    assert stat.S_IMODE(path.stat().st_mode) == 0o444


async def test_what_is_put_again_is_young_again(tmp_path: Path) -> None:
    """So that garbage collection spares a blob that is about to be referenced."""
    store = FolderBlobs(tmp_path)
    await store.put("default", SHA, b"content")
    os.utime(store.path("default", SHA), (1.0, 1.0))
    assert [one.at async for one in store.listed()] == [1.0]

    assert await store.put("default", SHA, b"content") == 7
    (again,) = [one.at async for one in store.listed()]
    assert again > 1.0


async def test_an_upload_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    """Neither the blob nor a temporary file."""
    store = FolderBlobs(tmp_path)

    async def broken() -> AsyncIterator[bytes]:
        yield b"con"
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        await store.put("default", SHA, broken())

    assert files_below(tmp_path) == []


async def test_nobody_else_can_list_blobs(tmp_path: Path) -> None:
    """A digest is all it takes to read a file."""
    store = FolderBlobs(tmp_path / "blobs")
    await store.put("default", SHA, b"content")

    folders = [store.root, *(path for path in store.root.rglob("*") if path.is_dir())]

    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o711}
    assert len(folders) == 3


async def test_a_disk_that_does_not_do_it_is_a_store_that_cannot_be_reached(tmp_path: Path) -> None:
    """Whoever keeps something there tries again later, as with any store: a result that was dear is not lost."""
    (tmp_path / "file").write_bytes(b"where a folder is expected")
    store = FolderBlobs(tmp_path / "file")
    with pytest.raises(BlobsDown):
        await store.put("default", SHA, b"content")
    with pytest.raises(BlobsDown):
        await store.read("default", SHA)
