"""Versions that are fetched before anybody binds them."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import msgspec

from pilotlight_core.host.blobs import BlobBackend, FolderBlobs, MemoryBlobs
from pilotlight_core.host.signing import Signer
from pilotlight_core.model.messages.node_messages import Prefetch
from pilotlight_core.model.spec import FileEntry
from pilotlight_runtime.containers.files.file_cache import FileCache
from pilotlight_runtime.containers.files.prefetcher import Prefetcher
from pilotlight_runtime.containers.files.staging import Stager
from pilotlight_runtime.containers.files.trusted_keys import TrustedKeys
from tests.builders.specs import function_spec, id_of, manifest
from tests.runtime.local_files import stored_files
from tests.waiting import until

CODE = b"def f(): pass\n"


async def stored(blobs: BlobBackend, signer: Signer, data: bytes = CODE) -> tuple[Prefetch, FileEntry]:
    """A version of one file."""
    entry = FileEntry("app.py", hashlib.sha256(data).hexdigest(), len(data))
    version = manifest(function_spec("f"), entry)
    signed = msgspec.msgpack.encode(signer.sign(version))
    digest = hashlib.sha256(signed).hexdigest()
    await blobs.put("acme", entry.sha256, data)
    await blobs.put("acme", digest, signed)
    return Prefetch(epoch=1, version=id_of(version), tenant="acme", manifest_sha256=digest), entry


async def test_a_version_is_there_before_it_is_bound(tmp_path: Path, anyio_backend: str) -> None:
    """Verified, in its tenant's part of the cache; one that is not there, or is damaged, keeps no other from coming."""
    blobs, signer = FolderBlobs(tmp_path / "blobs"), Signer.load_or_create(tmp_path / "keys")
    wanted, entry = await stored(blobs, signer)
    forged, never = await stored(blobs, Signer.load_or_create(tmp_path / "others"), b"import os\n")
    cache = FileCache(tmp_path / "cache")
    prefetcher = Prefetcher(Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), cache))

    running = asyncio.create_task(prefetcher.run())
    prefetcher.offer(msgspec.structs.replace(wanted, manifest_sha256="0" * 64))
    prefetcher.offer(forged)
    prefetcher.offer(wanted)
    await until(lambda: cache.holds("acme", entry))

    assert cache.path("acme", entry.sha256).read_bytes() == CODE
    assert not cache.holds("acme", never)
    running.cancel()
    await asyncio.wait([running])


async def test_nothing_is_fetched_ahead_that_is_not_here_or_too_large(tmp_path: Path, anyio_backend: str) -> None:
    """What another host has is asked for when it is bound: until then this node has no right to it."""
    signer, cache = Signer.load_or_create(tmp_path / "keys"), FileCache(tmp_path / "cache")
    keys = TrustedKeys(tmp_path / "keys")
    far, near = MemoryBlobs(), FolderBlobs(tmp_path / "blobs")
    for blobs, most in ((far, 100), (near, len(CODE) - 1)):
        wanted, entry = await stored(blobs, signer)
        stager = Stager(stored_files(blobs), keys, cache)

        await stager.fetch_ahead(Prefetcher.bind_of(wanted), most)

        assert not cache.holds("acme", entry)


class StrangeBlobs(FolderBlobs):
    """A store with a mistake that one digest brings to light."""

    strange = ""

    def path(self, tenant: str, sha256: str) -> Path:
        if sha256 == self.strange:
            raise KeyError(sha256)
        return super().path(tenant, sha256)


async def test_a_mistake_with_one_version_ends_no_agent(tmp_path: Path, anyio_backend: str) -> None:
    """Whoever deploys something strange would end every node that is told of it."""
    blobs, signer = StrangeBlobs(tmp_path / "blobs"), Signer.load_or_create(tmp_path / "keys")
    wanted, entry = await stored(blobs, signer)
    blobs.strange = "0" * 64
    cache = FileCache(tmp_path / "cache")
    prefetcher = Prefetcher(Stager(stored_files(blobs), TrustedKeys(tmp_path / "keys"), cache))
    prefetcher.offer(msgspec.structs.replace(wanted, manifest_sha256=blobs.strange))
    prefetcher.offer(wanted)

    running = asyncio.create_task(prefetcher.run())
    await until(lambda: cache.holds("acme", entry) or running.done())

    assert cache.holds("acme", entry)
    running.cancel()
    await asyncio.wait([running])
