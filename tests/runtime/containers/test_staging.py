"""Bringing a version to a node, from any blob store."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.host.blobs import BlobMissing, BlobStore, FolderBlobs, MemoryBlobs
from pilotlight_core.host.signing import BadSignature, NoKey, Signer
from pilotlight_core.model.messages.agent_messages import Bind
from pilotlight_core.model.spec import FileEntry, Manifest
from pilotlight_runtime.containers.bundle import CannotVerify
from pilotlight_runtime.containers.file_cache import FileCache
from pilotlight_runtime.containers.staging import Stager, TrustedKey
from pilotlight_runtime.containers.version_files import StoredFiles
from tests.builders.nodes import bind
from tests.builders.specs import function_spec, manifest

FILES = {"app.py": b"def f(): pass\n", "data/a.txt": b"a", "data/b.txt": b"a"}


@pytest.fixture(params=["memory", "folder"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    return MemoryBlobs() if request.param == "memory" else FolderBlobs(tmp_path / "blobs")


async def stored(blobs: BlobStore, signer: Signer) -> tuple[Manifest, Bind]:
    """A version in the store, and the command to bind it."""
    entries = []
    for path, data in FILES.items():
        digest = hashlib.sha256(data).hexdigest()
        await blobs.put("acme", digest, data)
        entries.append(FileEntry(path, digest, len(data)))
    version = manifest(function_spec("f"), *entries)
    signed = msgspec.msgpack.encode(signer.sign(version))
    digest = hashlib.sha256(signed).hexdigest()
    await blobs.put("acme", digest, signed)
    return version, bind(version=version.version_id, manifest_sha256=digest)


async def test_a_version_is_staged_once_and_linked_twice(blobs: BlobStore, tmp_path: Path, anyio_backend: str) -> None:
    """The second container of a version needs nothing from the store."""
    signer = Signer.load_or_create(tmp_path / "keys")
    _, bind = await stored(blobs, signer)
    cache = FileCache(tmp_path / "cache")
    stager = Stager(StoredFiles(blobs), TrustedKey(tmp_path / "keys"), cache)
    manifest = await stager.manifest(bind)
    first, second = tmp_path / "one", tmp_path / "two"
    first.mkdir()
    second.mkdir()

    await stager.stage(bind, manifest, first)
    for file in manifest.files:
        await blobs.delete("acme", file.sha256)
    await stager.stage(bind, manifest, second)

    for path, data in FILES.items():
        assert (second / path).read_bytes() == data
        assert (second / path).stat().st_ino == (first / path).stat().st_ino
        assert (second / path).stat().st_mode & 0o777 == 0o444
    assert cache.statistics().misses == 2
    cache.check_integrity()


async def test_a_file_that_is_missing_or_damaged_is_refused(
    blobs: BlobStore, tmp_path: Path, anyio_backend: str
) -> None:
    """And leaves nothing in the cache."""
    signer = Signer.load_or_create(tmp_path / "keys")
    manifest, bind = await stored(blobs, signer)
    cache = FileCache(tmp_path / "cache")
    stager = Stager(StoredFiles(blobs), TrustedKey(tmp_path / "keys"), cache)
    into = tmp_path / "app"
    into.mkdir()
    wrong = FileEntry("app.py", manifest.files[0].sha256, 3)
    await blobs.delete("acme", manifest.files[1].sha256)

    with pytest.raises((CannotVerify, BlobMissing)):
        await stager.stage(bind, manifest, into)
    if isinstance(blobs, MemoryBlobs):
        blobs.kept["acme", wrong.sha256] = b"something else"
        with pytest.raises(CannotVerify):
            await stager.stage(bind, msgspec.structs.replace(manifest, files=(manifest.files[0],)), into)

    assert not [path for path in (tmp_path / "cache").glob("*/*") if path.suffix]
    cache.check_integrity()


@pytest.mark.parametrize("size", [0, 3, 10**6])
async def test_a_size_that_is_a_lie_is_refused(blobs: BlobStore, tmp_path: Path, anyio_backend: str, size: int) -> None:
    """The cache and the bundle's limit count what entries say."""
    manifest, bind = await stored(blobs, Signer.load_or_create(tmp_path / "keys"))
    lie = msgspec.structs.replace(manifest, files=(msgspec.structs.replace(manifest.files[0], size=size),))
    into = tmp_path / "app"
    into.mkdir()

    stager = Stager(StoredFiles(blobs), TrustedKey(tmp_path / "keys"), FileCache(tmp_path / "cache"))

    with pytest.raises(CannotVerify):
        await stager.stage(bind, lie, into)

    assert not list(into.iterdir())


async def test_only_the_platforms_signature_counts(tmp_path: Path, anyio_backend: str) -> None:
    """The key may come after the agent's start, and may be replaced; another's is refused."""
    blobs = MemoryBlobs()
    stager = Stager(StoredFiles(blobs), TrustedKey(tmp_path / "keys"), FileCache(tmp_path / "cache"))
    other = Signer.load_or_create(tmp_path / "other")
    _, forged = await stored(blobs, other)
    with pytest.raises(NoKey):
        await stager.manifest(forged)

    signer = Signer.load_or_create(tmp_path / "keys")
    manifest, bind = await stored(blobs, signer)

    assert await stager.manifest(bind) == manifest
    with pytest.raises(BadSignature):
        await stager.manifest(forged)


async def test_a_damaged_manifest_is_refused(tmp_path: Path, anyio_backend: str) -> None:
    """Before anything in it is looked at."""
    blobs = MemoryBlobs()
    _, bind = await stored(blobs, Signer.load_or_create(tmp_path / "keys"))
    blobs.kept["acme", bind.manifest_sha256] += b"!"
    stager = Stager(StoredFiles(blobs), TrustedKey(tmp_path / "keys"), FileCache(tmp_path / "cache"))

    with pytest.raises(CannotVerify, match="damaged"):
        await stager.manifest(bind)
