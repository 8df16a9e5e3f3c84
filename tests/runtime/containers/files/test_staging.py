"""Bringing a version to a node, from any blob store."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.host.blobs import BlobBackend, BlobMissing, BlobsDown, FolderBlobs, MemoryBlobs
from pilotlight_core.host.signing import BadSignature, NoKey, Signer
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart, FileEntry, Manifest
from pilotlight_runtime.containers.files.bundle import CannotVerify
from pilotlight_runtime.containers.files.disk_room import DiskRoom, NoDiskRoom
from pilotlight_runtime.containers.files.file_cache import FileCache
from pilotlight_runtime.containers.files.node_weights import NodeWeights
from pilotlight_runtime.containers.files.staging import AT_ONCE, OF_ONE, Stager
from pilotlight_runtime.containers.files.trusted_keys import TrustedKeys
from tests.builders.nodes import bind
from tests.builders.specs import function_spec, id_of, manifest
from tests.runtime.local_files import stored_files

FILES = {"app.py": b"def f(): pass\n", "data/a.txt": b"a", "data/b.txt": b"a"}


@pytest.fixture(params=["memory", "folder"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobBackend:
    return MemoryBlobs() if request.param == "memory" else FolderBlobs(tmp_path / "blobs")


def models(tmp_path: Path) -> Path:
    """A folder for artifacts, which most versions leave empty."""
    folder = tmp_path / f"models-{token(6)}"
    folder.mkdir()
    return folder


async def stored(blobs: BlobBackend, signer: Signer) -> tuple[Manifest, Bind]:
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
    return version, bind(version=id_of(version), manifest_sha256=digest)


async def test_a_version_is_staged_once_and_linked_twice(
    blobs: BlobBackend, tmp_path: Path, anyio_backend: str
) -> None:
    """The second container of a version needs nothing from the store."""
    signer = Signer.load_or_create(tmp_path / "keys")
    _, bind = await stored(blobs, signer)
    cache = FileCache(tmp_path / "cache")
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), cache)
    manifest = await stager.manifest(bind)
    first, second = tmp_path / "one", tmp_path / "two"
    first.mkdir()
    second.mkdir()

    await stager.stage(bind, manifest, first, models(tmp_path))
    for file in manifest.files:
        await blobs.delete("acme", file.sha256)
    await stager.stage(bind, manifest, second, models(tmp_path))

    for path, data in FILES.items():
        assert (second / path).read_bytes() == data
        assert (second / path).stat().st_ino == (first / path).stat().st_ino
        assert (second / path).stat().st_mode & 0o777 == 0o444
    assert cache.statistics().misses == 2
    cache.check_integrity()


async def test_what_is_changed_in_the_store_later_changes_nothing_that_was_verified(
    tmp_path: Path, anyio_backend: str
) -> None:
    """Also where both are on one disk, and the same file is written anew."""
    blobs = FolderBlobs(tmp_path / "blobs")
    manifest, bind = await stored(blobs, Signer.load_or_create(tmp_path / "keys"))
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), FileCache(tmp_path / "cache"))
    first, second = tmp_path / "one", tmp_path / "two"
    first.mkdir()
    second.mkdir()
    await stager.stage(bind, manifest, first, models(tmp_path))
    for file in manifest.files:
        path = blobs.path("acme", file.sha256)
        path.chmod(0o644)
        path.write_bytes(b"something else")

    await stager.stage(bind, manifest, second, models(tmp_path))

    for path_inside, data in FILES.items():
        assert (first / path_inside).read_bytes() == (second / path_inside).read_bytes() == data


async def test_a_file_that_is_missing_or_damaged_is_refused(
    blobs: BlobBackend, tmp_path: Path, anyio_backend: str
) -> None:
    """And leaves nothing in the cache."""
    signer = Signer.load_or_create(tmp_path / "keys")
    manifest, bind = await stored(blobs, signer)
    cache = FileCache(tmp_path / "cache")
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), cache)
    into = tmp_path / "app"
    into.mkdir()
    wrong = FileEntry("app.py", manifest.files[0].sha256, 3)
    await blobs.delete("acme", manifest.files[1].sha256)

    with pytest.raises((CannotVerify, BlobMissing)):
        await stager.stage(bind, manifest, into, models(tmp_path))
    if isinstance(blobs, MemoryBlobs):
        blobs.kept["acme", wrong.sha256] = b"something else"
        with pytest.raises(CannotVerify):
            await stager.stage(
                bind, msgspec.structs.replace(manifest, files=(manifest.files[0],)), into, models(tmp_path)
            )

    assert not [path for path in (tmp_path / "cache").glob("*/*") if path.suffix]
    cache.check_integrity()


@pytest.mark.parametrize("size", [0, 3, 10**6])
async def test_a_size_that_is_a_lie_is_refused(
    blobs: BlobBackend, tmp_path: Path, anyio_backend: str, size: int
) -> None:
    """The cache and the bundle's limit count what entries say."""
    manifest, bind = await stored(blobs, Signer.load_or_create(tmp_path / "keys"))
    lie = msgspec.structs.replace(manifest, files=(msgspec.structs.replace(manifest.files[0], size=size),))
    into = tmp_path / "app"
    into.mkdir()

    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), FileCache(tmp_path / "cache"))

    with pytest.raises(CannotVerify):
        await stager.stage(bind, lie, into, models(tmp_path))

    assert not list(into.iterdir())


async def test_only_the_platforms_signature_counts(tmp_path: Path, anyio_backend: str) -> None:
    """The key may come after the agent's start, and may be replaced; another's is refused."""
    blobs = MemoryBlobs()
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), FileCache(tmp_path / "cache"))
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
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), FileCache(tmp_path / "cache"))

    with pytest.raises(CannotVerify, match="damaged"):
        await stager.manifest(bind)


async def with_artifact(
    blobs: BlobBackend, *contents: bytes, path: str = "model.bin", tenant: str = "acme"
) -> tuple[Manifest, Bind]:
    """A version with the artifact `tiny`: a file of these parts, and a small one."""
    parts = []
    for name, data in (*((path, content) for content in contents), ("config.json", b"{}")):
        digest = hashlib.sha256(data).hexdigest()
        await blobs.put(tenant, digest, data)
        parts.append(ArtifactPart(name, digest, len(data)))
    artifact = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=tuple(parts))
    return manifest(function_spec("f"), artifacts=(artifact,), tenant=tenant), bind(tenant=tenant)


async def test_a_file_of_several_parts_is_one_again(blobs: BlobBackend, tmp_path: Path, anyio_backend: str) -> None:
    """At its place, read-only; the second container fetches nothing, though the store has lost it."""
    version, command = await with_artifact(blobs, b"a" * 3, b"", b"b" * 2**21, b"a" * 3)
    cache = FileCache(tmp_path / "cache")
    weights = NodeWeights(cache)
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), cache, weights=weights)
    first, second = models(tmp_path), models(tmp_path)

    await stager.stage(command, version, models(tmp_path), first)
    await weights.settle()
    for part in version.artifacts[0].parts:
        await blobs.delete("acme", part.sha256)
    # A cache that is opened anew finds it too.
    again = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), FileCache(tmp_path / "cache"))
    await again.stage(command, version, models(tmp_path), second)

    for folder in (first, second):
        whole = folder / "tiny" / "model.bin"
        assert whole.read_bytes() == b"aaa" + b"b" * 2**21 + b"aaa"
        assert whole.stat().st_mode & 0o777 == 0o444
        assert (folder / "tiny" / "config.json").read_bytes() == b"{}"
    assert cache.statistics().misses == 2
    assert cache.statistics().bytes == 2**21 + 6 + 2
    cache.check_integrity()


async def test_what_may_not_be_on_the_disk_is_fetched_again(
    blobs: BlobBackend, tmp_path: Path, anyio_backend: str
) -> None:
    """A file that is written in parts has its size at once: a machine that stopped may have left nothing in it."""
    version, command = await with_artifact(blobs, b"a" * 3, b"b" * 3)
    cache, into = FileCache(tmp_path / "cache"), models(tmp_path)
    await Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), cache).stage(
        command, version, models(tmp_path), into
    )
    (joined,) = cache.named("joined-")
    (into / "tiny" / "model.bin").write_bytes(bytes(6))

    again = FileCache(tmp_path / "cache")
    assert again.named("joined-") == []
    into = models(tmp_path)
    weights = NodeWeights(again)
    await Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), again, weights=weights).stage(
        command, version, models(tmp_path), into
    )
    assert (into / "tiny" / "model.bin").read_bytes() == b"aaabbb"
    await weights.settle()
    assert FileCache(tmp_path / "cache").named("joined-") == [joined]


class CountedBlobs(MemoryBlobs):
    """A store whose connections break off after the first piece, `breaks` times."""

    def __init__(self, breaks: int = 0) -> None:
        super().__init__()
        self.reads: list[str] = []
        self.breaks = breaks

    async def get(self, tenant: str, sha256: str) -> AsyncIterator[bytes]:
        self.reads.append(sha256)
        async for piece in super().get(tenant, sha256):
            yield piece
            if self.breaks:
                self.breaks -= 1
                raise BlobsDown("The connection is broken.")


async def test_containers_that_start_together_fetch_a_file_once(tmp_path: Path, anyio_backend: str) -> None:
    """The others wait for the first one's."""
    blobs = CountedBlobs()
    version, command = await with_artifact(blobs, b"a", b"b")
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), FileCache(tmp_path / "cache"))

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(stager.stage(command, version, models(tmp_path), models(tmp_path)))

    assert sorted(blobs.reads) == sorted(part.sha256 for part in version.artifacts[0].parts)


@pytest.mark.parametrize("breaks", [2, 9])
async def test_a_part_that_breaks_off_is_fetched_again(tmp_path: Path, anyio_backend: str, breaks: int) -> None:
    """And the file with it only if the store stays away."""
    blobs = CountedBlobs()
    version, command = await with_artifact(blobs, b"a" * 2**21, b"b" * 2**21)
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), FileCache(tmp_path / "cache"))
    into, blobs.breaks = models(tmp_path), breaks
    only = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=version.artifacts[0].parts[:2])
    version = msgspec.structs.replace(version, artifacts=(only,))

    if breaks == 2:
        await stager.stage(command, version, models(tmp_path), into)
        assert (into / "tiny" / "model.bin").read_bytes() == b"a" * 2**21 + b"b" * 2**21
        assert len(blobs.reads) == 4
    else:
        with pytest.raises(BlobsDown):
            await stager.stage(command, version, models(tmp_path), into)


async def test_a_part_that_is_gone_is_named(blobs: BlobBackend, tmp_path: Path, anyio_backend: str) -> None:
    """As one that is damaged."""
    version, command = await with_artifact(blobs, b"a", b"b")
    await blobs.delete("acme", version.artifacts[0].parts[0].sha256)
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), FileCache(tmp_path / "cache"))

    with pytest.raises(CannotVerify, match=r"^part 1 of 2 of tiny/model\.bin is not in the blob store"):
        await stager.stage(command, version, models(tmp_path), models(tmp_path))


@pytest.mark.parametrize("content", [b"B", b"", b"bb", b"b" * 2**21])
async def test_a_part_that_is_not_what_was_signed_is_refused_by_name(
    tmp_path: Path, anyio_backend: str, content: bytes
) -> None:
    """Whatever it has become; nothing of the file stays on the node."""
    blobs = MemoryBlobs()
    version, command = await with_artifact(blobs, b"a", b"b")
    blobs.kept["acme", version.artifacts[0].parts[1].sha256] = content
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), FileCache(tmp_path / "cache"))
    into = models(tmp_path)

    with pytest.raises(CannotVerify, match=r"^part 2 of 2 of tiny/model\.bin in the blob store is "):
        await stager.stage(command, version, models(tmp_path), into)

    assert not list(into.iterdir())
    assert not [path for path in (tmp_path / "cache").glob("*/*") if path.suffix or path.name.startswith("joined")]


async def test_what_does_not_fit_on_the_disk_is_not_fetched(tmp_path: Path, anyio_backend: str) -> None:
    """Not a byte of it; once it is there it needs no room."""
    blobs, free = CountedBlobs(), [10]
    version, command = await with_artifact(blobs, b"a" * 5, b"b" * 5)
    cache = FileCache(tmp_path / "cache")
    room = DiskRoom(tmp_path, lambda _: free[0])
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), cache, room)

    with pytest.raises(NoDiskRoom, match=r"12 bytes of files that are not on this node, whose disk has room for 10\."):
        await stager.stage(command, version, models(tmp_path), models(tmp_path))
    assert blobs.reads == []

    free[0] = 12
    await stager.stage(command, version, models(tmp_path), models(tmp_path))
    free[0] = 0
    await stager.stage(command, version, models(tmp_path), models(tmp_path))


class HeldBlobs(MemoryBlobs):
    """A store that answers a tenant once it is let go."""

    def __init__(self, *held: str) -> None:
        super().__init__()
        self.held = set(held)
        self.open: list[str] = []
        self._opened = asyncio.Semaphore(0)
        self.let_go = asyncio.Event()

    async def until_open(self, count: int) -> None:
        for _ in range(count):
            await self._opened.acquire()

    async def get(self, tenant: str, sha256: str) -> AsyncIterator[bytes]:
        if tenant in self.held:
            self.open.append(tenant)
            self._opened.release()
            await self.let_go.wait()
        async for piece in super().get(tenant, sha256):
            yield piece


@pytest.mark.parametrize("parts", [1, 2 * AT_ONCE])
async def test_a_large_artifact_does_not_hold_up_others(tmp_path: Path, anyio_backend: str, parts: int) -> None:
    """Another tenant's artifact is fetched beside it, be it of one part or many."""
    blobs = HeldBlobs("acme")
    large, first = await with_artifact(blobs, *(b"%d" % number for number in range(2 * AT_ONCE)))
    other, second = await with_artifact(blobs, *(b"%d" % number for number in range(parts)), tenant="rival")
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), FileCache(tmp_path / "cache"))

    async with asyncio.TaskGroup() as group:
        slow = group.create_task(stager.stage(first, large, models(tmp_path), models(tmp_path)))
        await blobs.until_open(OF_ONE)
        await asyncio.wait_for(stager.stage(second, other, models(tmp_path), models(tmp_path)), 30)
        assert not slow.done()
        assert blobs.open == ["acme"] * OF_ONE
        blobs.let_go.set()


async def test_bundles_do_not_wait_behind_artifacts(tmp_path: Path, anyio_backend: str) -> None:
    """Though as many artifacts are fetched as may be at a time."""
    blobs = HeldBlobs("acme")
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), FileCache(tmp_path / "cache"))
    data = b"def f(): pass"
    digest = hashlib.sha256(data).hexdigest()
    await blobs.put("rival", digest, data)
    small = manifest(function_spec("f"), FileEntry("app.py", digest, len(data)), tenant="rival")

    async with asyncio.TaskGroup() as group:
        for path in "abc":
            contents = [f"{path}{number}".encode() for number in range(AT_ONCE)]
            version, command = await with_artifact(blobs, *contents, path=path)
            group.create_task(stager.stage(command, version, models(tmp_path), models(tmp_path)))
        await blobs.until_open(AT_ONCE)
        into = models(tmp_path)
        await asyncio.wait_for(stager.stage(bind(tenant="rival"), small, into, models(tmp_path)), 30)
        assert (into / "app.py").read_bytes() == data
        assert blobs.open == ["acme"] * AT_ONCE
        blobs.let_go.set()


async def test_a_model_stays_while_a_container_has_it(tmp_path: Path, anyio_backend: str) -> None:
    """Larger than the whole cache: the next container fetches nothing. When none has it any more, it goes."""
    blobs = CountedBlobs()
    version, command = await with_artifact(blobs, b"a" * 50, b"b" * 50)
    other, second = await with_artifact(blobs, b"c", tenant="rival")
    cache = FileCache(tmp_path / "cache", limit=10)
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), cache)
    used = [models(tmp_path), models(tmp_path)]

    for into in used:
        await stager.stage(command, version, models(tmp_path), into)
    assert len(blobs.reads) == 3
    assert cache.statistics().bytes == 102

    for into in used:
        shutil.rmtree(into)
    await stager.stage(second, other, models(tmp_path), models(tmp_path))
    assert [path.name for path in (tmp_path / "cache" / "acme").iterdir() if path.stat().st_size > 2] == []
    cache.check_integrity()


async def test_files_that_nobody_uses_make_room(tmp_path: Path, anyio_backend: str) -> None:
    """On a full disk, though the cache is within its limit."""
    blobs = CountedBlobs()
    version, command = await with_artifact(blobs, b"a" * 50, b"b" * 50)
    other, second = await with_artifact(blobs, b"c" * 60, b"d" * 60, tenant="rival")
    cache = FileCache(tmp_path / "cache")
    room = DiskRoom(tmp_path, lambda _: 200 - cache.statistics().bytes)
    stager = Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), cache, room)
    used = models(tmp_path)

    await stager.stage(command, version, models(tmp_path), used)
    with pytest.raises(NoDiskRoom):
        await stager.stage(second, other, models(tmp_path), models(tmp_path))
    shutil.rmtree(used)
    await stager.stage(second, other, models(tmp_path), models(tmp_path))

    assert [path for path in (tmp_path / "cache" / "acme").iterdir() if path.stat().st_size > 2] == []
    cache.check_integrity()
