"""What blobs tenants' versions need."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from pilotlight_core.host.blobs import MemoryBlobKeys, MemoryBlobs, SealedBlobs
from pilotlight_core.model.artifacts.evidence_info import EvidenceInfo
from pilotlight_core.model.records.files import FileRecord
from pilotlight_core.model.records.jobs import BlobRef
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart, FileEntry, SignedManifest
from pilotlight_core.model.versions.manifest_codec import encode_manifest
from pilotlight_core.model.versions.pushed_weights import (
    WeightsRecord,
    WeightsRevision,
    listing_of,
    weights_digest,
)
from pilotlight_gateway.deploys.deploy_plan import signed_blob
from pilotlight_gateway.duties.bundle_files import BundleFiles
from pilotlight_gateway.duties.version_collector import StoredVersion
from tests.builders.specs import manifest
from tests.gateway.world import entry, function


async def stored(blobs: MemoryBlobs, tenant: str, *files: FileEntry, **more: Any) -> StoredVersion:
    made = manifest(function(), *files, tenant=tenant, app="shop", **more)
    digest, data = signed_blob(SignedManifest(manifest=encode_manifest(made), key_id="k", signature=b""))
    await blobs.put(tenant, digest, data)
    return StoredVersion(id="v", tenant=tenant, app="shop", function="f", created_at=0.0, manifest_sha256=digest)


async def test_a_tenants_files_are_those_of_all_its_versions() -> None:
    """And the manifests themselves; those of others are not."""
    blobs, one, two, three = MemoryBlobs(), entry(b"1"), entry(b"2"), entry(b"3")
    mine = [await stored(blobs, "acme", one), await stored(blobs, "acme", one, two)]
    files = BundleFiles(blobs, [*mine, await stored(blobs, "rival", three)])

    assert set(await files.of("acme") or ()) == {one.sha256, two.sha256, *(version.manifest_sha256 for version in mine)}
    assert await files.of("nobody") == frozenset()


async def test_the_parts_of_artifacts_are_needed_as_files_are() -> None:
    """As long as there is a version that names them."""
    blobs, code, part = MemoryBlobs(), entry(b"1"), entry(b"weights", "model.bin")
    parts = (ArtifactPart(part.path, part.sha256, part.size),)
    tiny = ArtifactEntry(kind=ArtifactKind.SBOM, name="tiny", parts=parts)
    version = await stored(blobs, "acme", code, artifacts=(tiny,))

    found = await BundleFiles(blobs, [version]).of("acme")
    assert found == frozenset({code.sha256, part.sha256, version.manifest_sha256})


async def test_a_manifest_that_is_gone_or_cannot_be_read_keeps_all() -> None:
    """What is not known to be needless stays, of its tenant alone."""
    blobs = MemoryBlobs()
    gone = msgspec.structs.replace(await stored(blobs, "acme"), manifest_sha256="0" * 64)
    assert await BundleFiles(blobs, [gone]).of("acme") is None

    odd = hashlib.sha256(b"odd").hexdigest()
    await blobs.put("acme", odd, b"odd")
    assert await BundleFiles(blobs, [msgspec.structs.replace(gone, manifest_sha256=odd)]).of("acme") is None

    sealing = SealedBlobs(blobs, MemoryBlobKeys(), seals=True)
    sealed = await stored(blobs, "rival")
    await sealing.seal_stored("rival", sealed.manifest_sha256)
    assert await BundleFiles(sealing, [sealed]).of("rival") is not None
    ((place, _),) = [one for one in blobs.kept.items() if one[0][0] == "rival"]
    blobs.kept[place] = b"damaged"
    assert await BundleFiles(sealing, [sealed]).of("rival") is None


async def test_weights_that_were_pushed_are_needed() -> None:
    """Their listings and parts, until a day after they were removed; a listing that is lost keeps all."""
    blobs, part = MemoryBlobs(), ArtifactPart("m", entry(b"m").sha256, 1)
    digest = weights_digest((part,))
    await blobs.put("acme", digest, listing_of((part,)))

    def record(removed_at: float) -> WeightsRecord:
        one = WeightsRevision(
            digest=digest, files=1, parts=1, size=1, pushed_at=0.0, pushed_by="k", removed_at=removed_at
        )
        return WeightsRecord(tenant="acme", name="m", revisions=(one,))

    assert await BundleFiles(blobs, [], [record(0.0)], 10.0**9).of("acme") == frozenset({digest, part.sha256})
    assert await BundleFiles(blobs, [], [record(0.0)], 10.0**9).of("rival") == frozenset()
    assert await BundleFiles(blobs, [], [record(5.0)], 6.0).of("acme") == frozenset({digest, part.sha256})
    assert await BundleFiles(blobs, [], [record(5.0)], 10.0**9).of("acme") == frozenset()
    blobs.kept["acme", digest] = b"{"
    assert await BundleFiles(blobs, [], [record(0.0)], 10.0**9).of("acme") is None


async def test_parts_of_uploaded_files_are_needed_until_they_expire() -> None:
    """By their tenant alone."""
    part = BlobRef(sha256="1" * 64, size=1)
    file = FileRecord(
        tenant="acme", id="file-1", name="in", purpose="batch", size=1, created_at=0.0, expires_at=9.0, by="k",
        parts=(part,),
    )  # fmt: skip
    assert await BundleFiles(MemoryBlobs(), [], [], 8.0, [file]).of("acme") == frozenset({part.sha256})
    assert await BundleFiles(MemoryBlobs(), [], [], 8.0, [file]).of("rival") == frozenset()
    assert await BundleFiles(MemoryBlobs(), [], [], 9.0, [file]).of("acme") == frozenset()


async def test_documents_about_a_version_are_needed_as_long_as_it_is() -> None:
    """None of them is named in its manifest."""
    blobs = MemoryBlobs()
    evidence = EvidenceInfo(statement="1" * 64, sbom="2" * 64, verdict="3" * 64, signatures={"code": "4" * 64})
    version = msgspec.structs.replace(await stored(blobs, "acme"), evidence=evidence)

    assert await BundleFiles(blobs, [version]).of("acme") == evidence.digests | {version.manifest_sha256}


async def test_a_signature_over_weights_is_needed_as_long_as_they_are() -> None:
    """Each deploy of them takes it along."""
    blobs, parts = MemoryBlobs(), (ArtifactPart("m", "1" * 64, 1),)
    digest = weights_digest(parts)
    await blobs.put("acme", digest, listing_of(parts))
    pushed = WeightsRevision(digest=digest, files=1, parts=1, size=1, pushed_at=0.0, pushed_by="k", signature="5" * 64)
    record = WeightsRecord(tenant="acme", name="m", revisions=(pushed,))

    assert "5" * 64 in (await BundleFiles(blobs, [], [record], 1.0).of("acme") or ())
    gone = WeightsRecord(tenant="acme", name="m", revisions=(msgspec.structs.replace(pushed, removed_at=1.0),))
    assert await BundleFiles(blobs, [], [gone], 10**6).of("acme") == frozenset()
