"""Blobs of jobs and batches that nobody will ask for are deleted, and no others."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from pilotlight_core.host.blobs import BlobsDown, MemoryBlobKeys, MemoryBlobs, SealedBlobs
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.batches import BatchItem, BatchRecord
from pilotlight_core.model.records.jobs import JobRecord
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart, SignedManifest
from pilotlight_core.model.versions.manifest_codec import encode_manifest
from pilotlight_gateway.batches.batch_manifest import ManifestWriter
from pilotlight_gateway.deploys.deploy_plan import signed_blob
from pilotlight_gateway.duties.bundle_files import BundleFiles
from pilotlight_gateway.duties.orphan_blobs import YOUNG_S, Orphans
from pilotlight_gateway.duties.version_collector import StoredVersion
from pilotlight_gateway.jobs.job_payloads import LONGEST_HEAD, owner_of, store_payload
from tests.builders.jobs import JOB, job
from tests.builders.specs import function_spec, manifest
from tests.gateway.batches.makers import batch

LARGE = b"x" * 100_000
BATCH = "batch_00000000000000000000"
AT = 1_000_000.0


class Site:
    """A store, and records by their keys."""

    def __init__(self) -> None:
        self.blobs = MemoryBlobs(lambda: self.now)
        self.now = 0.0
        self.jobs: dict[str, bytes] = {}
        self.batches: dict[tuple[str, str], BatchRecord] = {}
        self.files: dict[str, frozenset[str] | None] = {}
        """By tenant, what its versions need."""
        self.broken = False
        self.renewed = ""
        """What a deploy renews while the search looks at its tenant's versions."""

    def put(self, *kept: JobRecord) -> None:
        self.jobs = {one.key: msgspec.msgpack.encode(one) for one in kept}

    async def upload(self, upload: str, items: int, *, tenant: str = "acme") -> BatchRecord:
        """The inputs of a batch, and the record that would name them."""
        writer = ManifestWriter(self.blobs, tenant, f"{BATCH} {upload}")
        await writer.add([BatchItem(index, str(index), b"x") for index in range(items)])
        return batch(tenant, id=BATCH, chunks=await writer.finish())

    async def delete(self) -> int:
        return await Orphans(self.blobs, self._job, self._batch).delete(AT, self._files)

    async def _files(self, tenant: str) -> frozenset[str] | None:
        if self.renewed:
            assert await self.blobs.renew(tenant, self.renewed)
        return self.files.get(tenant, frozenset())

    async def _job(self, key: str) -> bytes | None:
        return self.jobs.get(key)

    async def _batch(self, tenant: str, name: str) -> tuple[BatchRecord, int] | None:
        if self.broken:
            raise msgspec.DecodeError
        found = self.batches.get((tenant, name))
        return None if found is None else (found, 1)


@pytest.fixture
def site() -> Site:
    return Site()


def ended(**more: object) -> JobRecord:
    return jobs.expired(job(**more), 2_000.0)


async def test_what_a_forgotten_job_left_goes(site: Site) -> None:
    """Its input and its result, however large or small; once."""
    for what, content in (("input", LARGE), ("run", 3 * 2**20 * b"y"), ("small", b"x" * 257), ("tiny", b"")):
        await store_payload(site.blobs, "acme", JOB, what, content)
    assert await site.delete() == 4
    assert not site.blobs.kept
    assert await site.delete() == 0


async def test_what_a_job_needs_stays(site: Site) -> None:
    """Anything of one that has not ended; of one that has, what its record names and nothing else."""
    mine = await store_payload(site.blobs, "acme", JOB, "input", LARGE)
    lost = await store_payload(site.blobs, "acme", JOB, "a run that lost", b"small")
    site.put(job(input_blob=mine))
    assert await site.delete() == 0
    site.put(ended(input_blob=mine))
    assert await site.delete() == 1
    assert set(site.blobs.kept) == {("acme", mine.sha256)}
    assert lost != mine


async def test_what_an_upload_left_goes(site: Site) -> None:
    """One that was broken off with its gateway, or that another was before; not what a batch needs, however small."""
    await site.upload("broken-off", 1_200, tenant="zoo")
    assert await site.delete() == 4
    record = await site.upload("first", 501)
    mine = set(site.blobs.kept)
    await site.upload("second", 501)
    site.batches["acme", BATCH] = record
    assert await site.delete() == 3
    assert set(site.blobs.kept) == mine
    assert await site.delete() == 0


async def test_others_are_left_alone(site: Site) -> None:
    """What is young or of a version; another tenant's job or batch does not keep it, nor lose its own."""
    young = await store_payload(site.blobs, "acme", JOB, "input", LARGE)
    site.blobs.at["acme", young.sha256] = AT - YOUNG_S + 1
    for content in (LARGE, b"pilotlight call_ input\n" + LARGE, b"pilotlight call_1 " + LARGE, b"", b"x = 1\n"):
        await site.blobs.put("acme", hashlib.sha256(content).hexdigest(), content)
    site.files["acme"] = frozenset(digest for _, digest in site.blobs.kept) - {young.sha256}
    kept = set(site.blobs.kept)
    assert await site.delete() == 0
    theirs = await store_payload(site.blobs, "zoo", JOB, "input", LARGE)
    site.batches["acme", BATCH] = await site.upload("mine", 1)
    kept |= {one for one in site.blobs.kept if one[0] == "acme"}
    await site.upload("theirs", 1, tenant="zoo")
    site.put(ended(input_blob=theirs))
    assert await site.delete() == 3
    assert set(site.blobs.kept) == kept


async def test_what_a_deploy_renews_meanwhile_stays(site: Site) -> None:
    """It was listed as old, and is looked at again before it is deleted."""
    digest = hashlib.sha256(LARGE).hexdigest()
    await site.blobs.put("acme", digest, LARGE)
    site.now, site.renewed = AT, digest
    assert await site.delete() == 0
    assert ("acme", digest) in site.blobs.kept


async def test_what_cannot_be_known_stays(site: Site) -> None:
    """A record or a list of chunks that cannot be read, a store that cannot be reached."""
    ref = await store_payload(site.blobs, "acme", JOB, "input", LARGE)
    site.jobs[job().key] = b"\xc1"
    record = await site.upload("first", 1)
    site.broken = True
    assert await site.delete() == 0
    site.broken = False
    site.batches["acme", BATCH] = record
    await site.blobs.delete("acme", record.chunks.sha256)
    assert await site.delete() == 0
    site.blobs.down = True
    with pytest.raises(BlobsDown):
        await site.delete()
    assert ("acme", ref.sha256) in site.blobs.kept


def test_a_head_names_its_owner() -> None:
    """And nothing else does; it is never longer than what is looked at."""
    assert owner_of(b"pilotlight call_local_1_a input\nrest") == "call_local_1_a"
    assert owner_of(b"pilotlight batch_a upload items 1\nrest") == "batch_a"
    assert owner_of(b"pilotlight app_a upload\nrest") is None
    assert owner_of(b"") is None
    longest = b"pilotlight batch_" + b"a" * 128 + b" " + b"b" * 256 + b"\n"
    assert owner_of(longest[:LONGEST_HEAD]) is not None


async def test_files_and_manifests_that_no_version_needs_go(site: Site) -> None:
    """What a version needs stays, and everything of a tenant whose needs are not known."""
    needed, needless = b"import torch", b"print()"
    for tenant in ("acme", "rival"):
        for content in (needed, needless):
            await site.blobs.put(tenant, hashlib.sha256(content).hexdigest(), content)
    site.files = {"acme": frozenset({hashlib.sha256(needed).hexdigest()}), "rival": None}

    assert await site.delete() == 1

    assert ("acme", hashlib.sha256(needless).hexdigest()) not in site.blobs.kept
    assert len(site.blobs.kept) == 3


async def test_a_file_that_was_uploaded_again_since_it_was_listed_stays(site: Site) -> None:
    """A deploy is under way that needs it."""

    async def renewed(tenant: str) -> frozenset[str] | None:
        site.blobs.at[tenant, digest] = AT - 1.0
        return frozenset()

    digest = hashlib.sha256(b"x").hexdigest()
    await site.blobs.put("acme", digest, b"x")

    assert await Orphans(site.blobs, site._job, site._batch).delete(AT, renewed) == 0


@pytest.mark.parametrize("owner", [JOB, BATCH])
async def test_a_file_of_a_version_that_begins_like_a_job_stays(site: Site, owner: str) -> None:
    """What it says of itself counts only if no version needs it: its job or batch may never have been."""
    content = f"pilotlight {owner} input\nprint()".encode()
    digest = hashlib.sha256(content).hexdigest()
    await site.blobs.put("acme", digest, content)
    site.files["acme"] = frozenset({digest})

    assert await site.delete() == 0

    site.files["acme"] = None
    assert await site.delete() == 0
    site.files["acme"] = frozenset()
    assert await site.delete() == 1


async def test_a_file_that_begins_like_a_job_and_was_uploaded_again_stays(site: Site) -> None:
    """For the deploy that is under way, as any other file."""
    content = f"pilotlight {JOB} input\nprint()".encode()
    digest = hashlib.sha256(content).hexdigest()
    await site.blobs.put("acme", digest, content)

    async def renewed(tenant: str) -> frozenset[str] | None:
        site.blobs.at[tenant, digest] = AT - 1.0
        return frozenset()

    assert await Orphans(site.blobs, site._job, site._batch).delete(AT, renewed) == 0


async def test_artifacts_stay_with_their_version_and_go_with_it(site: Site) -> None:
    """Whatever a part holds, and with the manifest that names it; another tenant's version does not keep it."""
    content = f"pilotlight {JOB} input\nweights".encode()
    part = ArtifactPart("model.bin", hashlib.sha256(content).hexdigest(), len(content))
    tiny = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=(part,))
    made = manifest(function_spec(), artifacts=(tiny,), tenant="acme")
    digest, data = signed_blob(SignedManifest(manifest=encode_manifest(made), key_id="k", signature=b""))
    for tenant in ("acme", "zoo"):
        await site.blobs.put(tenant, part.sha256, content)
    await site.blobs.put("acme", digest, data)
    version = StoredVersion(id="v", tenant="acme", app="a", function="f", created_at=0.0, manifest_sha256=digest)
    search = Orphans(site.blobs, site._job, site._batch)

    assert await search.delete(AT, BundleFiles(site.blobs, [version]).of) == 1
    assert set(site.blobs.kept) == {("acme", part.sha256), ("acme", digest)}
    assert await search.delete(AT, BundleFiles(site.blobs, []).of) == 2


async def test_a_blob_that_does_not_open_stays_and_ends_no_pass() -> None:
    """Others' orphans go."""
    backend = MemoryBlobs()
    blobs = SealedBlobs(backend, MemoryBlobKeys(), seals=True)
    for tenant in ("acme", "rival"):
        await store_payload(blobs, tenant, "call_1", "output", LARGE)
    damaged = next(key for key in backend.kept if key[0] == "acme")
    backend.kept[damaged] = b"damaged"

    async def none(*_: str) -> None:
        return None

    async def no_files(_: str) -> frozenset[str]:
        return frozenset()

    assert await Orphans(blobs, none, none).delete(AT, no_files) == 1
    assert list(backend.kept) == [damaged]
