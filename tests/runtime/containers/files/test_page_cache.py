"""Files in the page cache."""

from __future__ import annotations

import ctypes
import errno
import resource
from pathlib import Path

import pytest

from pilotlight_runtime.containers.files import page_cache
from pilotlight_runtime.containers.files.page_cache import MappedFile, resident_bytes

SIZE = 5 * 4096 + 7


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "m").write_bytes(bytes(SIZE))
    return tmp_path / "m"


def test_what_was_just_written_is_there(path: Path) -> None:
    """All of it, to the byte; an empty file and a missing one have nothing."""
    assert resident_bytes(path) == SIZE
    (path.parent / "none").touch()
    assert resident_bytes(path.parent / "none") == resident_bytes(path.parent / "gone") == 0


def test_a_large_file_is_looked_at_in_pieces(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page takes a byte of this process."""
    monkeypatch.setattr(page_cache, "LOOKED_AT", 2)
    for pages in (1, 2, 4, 5):
        path.write_bytes(bytes(pages * 4096))
        assert resident_bytes(path) == pages * 4096
    path.write_bytes(bytes(SIZE))
    assert resident_bytes(path) == SIZE


def test_a_file_is_locked_as_far_as_the_kernel_does_it(path: Path) -> None:
    """And says whether it is; after it is closed nothing is."""
    mapped = MappedFile(path)
    assert mapped.lock() is mapped.is_locked
    assert mapped.resident() == SIZE
    mapped.close()
    mapped.close()
    assert (mapped.is_locked, mapped.resident()) == (False, 0)
    empty = MappedFile(_empty(path.parent))
    assert empty.lock()
    empty.close()


def test_where_nothing_is_locked_it_is_read_even_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may drop it again."""
    libc = page_cache._libc()

    class Refusing:
        def __getattr__(self, name: str) -> object:
            return getattr(libc, name)

        def mlock(self, *_: object) -> int:
            ctypes.set_errno(errno.ENOMEM)
            return -1

    monkeypatch.setattr(page_cache, "_libc", Refusing)
    mapped = MappedFile(path)
    assert not mapped.lock()
    assert (mapped.is_locked, mapped.resident()) == (False, SIZE)
    mapped.close()


def test_what_is_no_file_cannot_be_mapped(tmp_path: Path) -> None:
    """As with any file."""
    with pytest.raises(OSError, match="No such file"):
        MappedFile(tmp_path / "gone")
    assert resource.getpagesize() == 4096


def _empty(folder: Path) -> Path:
    (folder / "empty").touch()
    return folder / "empty"
