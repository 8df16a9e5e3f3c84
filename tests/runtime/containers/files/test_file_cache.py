"""The node's verified files."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from pilotlight_core.model.spec import FileEntry
from pilotlight_runtime.containers.files.bundle import CannotVerify
from pilotlight_runtime.containers.files.file_cache import FileCache, lay_out, link_or_copy, linked, verify_file


def entry(content: bytes, path: str = "app.py") -> FileEntry:
    return FileEntry(path, hashlib.sha256(content).hexdigest(), len(content))


def put(cache: FileCache, content: bytes, tenant: str = "acme") -> FileEntry:
    file = entry(content)
    path = cache.path(tenant, file.sha256)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    cache.add(tenant, file)
    return file


def test_a_file_is_fetched_once_for_each_tenant(tmp_path: Path) -> None:
    """Tenants do not share, so that nobody learns what others have."""
    cache = FileCache(tmp_path)
    file = put(cache, b"one")

    assert cache.missing("acme", [file, entry(b"two"), entry(b"two", "again.py")]) == [entry(b"two", "again.py")]
    assert cache.missing("rival", [file]) == [file]
    assert (cache.statistics().hits, cache.statistics().misses) == (1, 2)
    cache.check_integrity()


def test_the_longest_unused_go_first(tmp_path: Path) -> None:
    """When all together are too many bytes."""
    cache = FileCache(tmp_path, limit=10)
    old, used, new = (put(cache, content) for content in (b"old!", b"used", b"new!"))
    cache.missing("acme", [used])

    gone = cache.shrink()

    assert gone == [cache.path("acme", old.sha256)]
    assert cache.missing("acme", [used, new]) == []
    cache.check_integrity()


def test_what_a_container_has_is_kept(tmp_path: Path) -> None:
    """It counts nothing while it is linked, since to delete it would free nothing."""
    cache = FileCache(tmp_path / "cache", limit=10)
    cache.folder.mkdir()
    model, other = put(cache, b"x" * 30), put(cache, b"other", tenant="rival")
    link_or_copy(cache.path("acme", model.sha256), tmp_path / "model")
    assert linked(cache.folder, cache.beyond()) == {("acme", model.sha256)}

    assert cache.shrink(linked(cache.folder, cache.beyond())) == []
    (tmp_path / "model").unlink()
    assert cache.shrink(linked(cache.folder, cache.beyond())) == [cache.path("acme", model.sha256)]

    assert cache.missing("rival", [other]) == []
    assert cache.beyond() == []
    assert linked(cache.folder, [("acme", "gone")]) == set()
    cache.check_integrity()


def test_the_files_of_the_tenant_who_has_the_most_go_first(tmp_path: Path) -> None:
    """However long others' are unused; of that tenant's the longest unused."""
    cache = FileCache(tmp_path, limit=10)
    small = put(cache, b"old", tenant="rival")
    first, second, third = (put(cache, content) for content in (b"one!", b"two!", b"three"))

    assert cache.shrink() == [cache.path("acme", first.sha256), cache.path("acme", second.sha256)]

    assert cache.missing("rival", [small]) == cache.missing("acme", [third]) == []
    cache.check_integrity()


def test_a_full_disk_takes_what_is_unused(tmp_path: Path) -> None:
    """As much as is wanted; nothing, if all of it would not be enough."""
    cache = FileCache(tmp_path, limit=100)
    kept, gone = put(cache, b"kept"), put(cache, b"gone")
    linked_now = {("acme", kept.sha256)}

    assert cache.beyond() == []
    assert len(cache.beyond(1)) == 2
    assert cache.shrink(linked_now, 5) == []
    assert cache.shrink(linked_now, 4) == [cache.path("acme", gone.sha256)]
    cache.check_integrity()


def test_it_finds_its_files_again(tmp_path: Path) -> None:
    """After a restart; what a fetch had left half done is removed, and a file of another size does not count."""
    put(FileCache(tmp_path), b"whole")
    torn = entry(b"torn file")
    (tmp_path / "acme" / torn.sha256).write_bytes(b"torn")
    (tmp_path / "acme" / f"{torn.sha256}.x1").write_bytes(b"half")

    cache = FileCache(tmp_path)

    assert cache.missing("acme", [entry(b"whole"), torn]) == [torn]
    assert not list(tmp_path.glob("*/*.x1"))


def test_content_is_verified(tmp_path: Path) -> None:
    """Byte for byte."""
    path = tmp_path / "file"
    path.write_bytes(b"content")

    verify_file(path, entry(b"content"))
    with pytest.raises(CannotVerify, match="not"):
        verify_file(path, entry(b"CONTENT"))
    with pytest.raises(CannotVerify, match="7 bytes, not 3 as signed"):
        verify_file(path, FileEntry("app.py", entry(b"content").sha256, 3))


def test_files_are_laid_out_as_links(tmp_path: Path) -> None:
    """Nothing is copied, folders are made."""
    source = tmp_path / "source"
    source.write_bytes(b"x")
    into = tmp_path / "app"
    into.mkdir()

    lay_out([(entry(b"x", "a.py"), source), (entry(b"x", "p/q/b.py"), source)], into)

    assert (into / "p/q/b.py").stat().st_ino == source.stat().st_ino == (into / "a.py").stat().st_ino


def test_where_no_link_is_possible_a_copy_is_made(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """On another file system; read-only like the link would be."""
    source = tmp_path / "source"
    source.write_bytes(b"x")
    target = Path(f"/dev/shm/pilotlight-test-{os.getpid()}")
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EXDEV)):
            os.link(source, target)
        link_or_copy(source, target)
        assert target.read_bytes() == b"x"
        assert target.stat().st_mode & 0o777 == 0o444
        link_or_copy(source, target)
    finally:
        target.unlink(missing_ok=True)
