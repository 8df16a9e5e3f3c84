"""Weights of a tenant: what is stored, who may have it, and what stays."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from pilotlight.packing.folder_signing import FolderSigner
from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.host.supply.trust_keys import MemoryTrust
from pilotlight_core.model.api.weights_api import PushResponse
from pilotlight_core.model.errors import BadInput, Conflict, NotFound, QuotaExceeded
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart
from pilotlight_core.model.supply.key_terms import KeyTerms
from pilotlight_core.model.supply.signed_folders import SignedPart
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_core.model.versions.pushed_weights import REMOVED_KEPT_S, WeightsRef
from pilotlight_gateway.deploys import weights_pushes
from pilotlight_gateway.deploys.blob_usage import BlobUsage
from pilotlight_gateway.deploys.rules.weights_rules import WeightsPush
from pilotlight_gateway.deploys.weights_pushes import PushedWeights
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.supply import signing_key, trusting
from tests.gateway.world import Clock

ACME = Principal(tenant="acme", key_id="key1", scopes=frozenset({"deploy"}))


def part(content: bytes, path: str = "m.safetensors") -> ArtifactPart:
    return ArtifactPart(path, hashlib.sha256(content).hexdigest(), len(content))


def pushed(*parts: ArtifactPart, name: str = "m") -> ArtifactEntry:
    return ArtifactEntry(kind=ArtifactKind.WEIGHTS, name=name, parts=parts)


@pytest.fixture
def wall() -> Clock:
    return Clock(1_000.0)


@pytest.fixture
def blobs(wall: Clock) -> MemoryBlobs:
    return MemoryBlobs(wall)


@pytest.fixture
def weights(blobs: MemoryBlobs, wall: Clock) -> PushedWeights:
    return PushedWeights(registry=MemoryRegistry(), blobs=blobs, usage=BlobUsage(blobs), wall=wall)


async def push(weights: PushedWeights, *contents: bytes, name: str = "m") -> str:
    """Upload and push; the digest."""
    parts = [part(content) for content in contents]
    for one, content in zip(parts, contents, strict=True):
        await weights.blobs.put("acme", one.sha256, content)
    answer = await weights.push(ACME, WeightsPush(pushed(*parts, name=name)))
    assert not answer.missing
    return answer.digest


async def test_what_is_missing_is_asked_for_and_nothing_is_named(weights: PushedWeights, blobs: MemoryBlobs) -> None:
    """Each once; what is there is not sent again. Another tenant's blob does not help."""
    asked = pushed(part(b"1"), part(b"2"), part(b"1"))
    await blobs.put("rival", part(b"2").sha256, b"2")
    assert set((await weights.push(ACME, WeightsPush(asked))).missing) == {part(b"1").sha256, part(b"2").sha256}
    await blobs.put("acme", part(b"1").sha256, b"1")
    assert (await weights.push(ACME, WeightsPush(asked))).missing == (part(b"2").sha256,)
    assert await weights.listed("acme") == []

    await blobs.put("acme", part(b"2").sha256, b"2")
    first = await weights.push(ACME, WeightsPush(asked))
    again = await weights.push(ACME, WeightsPush(asked))

    assert (first.missing, first.unchanged, again.unchanged) == ((), False, True)
    (one,) = await weights.listed("acme")
    assert [(each.digest, each.size, each.files) for each in one.revisions] == [(first.digest, 3, 1)]


async def test_the_newest_is_what_a_name_stands_for(weights: PushedWeights) -> None:
    """One that is pushed again is the newest again; a digest may be shortened."""
    one, two = await push(weights, b"1"), await push(weights, b"2")
    assert (await weights.find("acme", WeightsRef("m"))).digest == two
    assert (await weights.entry("acme", WeightsRef("m", one[:8]))).digest == one
    assert await push(weights, b"1") == one
    assert (await weights.find("acme", WeightsRef("m"))).digest == one
    assert [each.digest for each in (await weights.listed("acme"))[0].revisions] == [two, one]
    shown = await weights.shown("acme", WeightsRef("m", two))
    assert [(file.path, file.size, file.parts) for file in shown.contents] == [("m.safetensors", 1, 1)]


async def test_nobody_else_has_them(weights: PushedWeights) -> None:
    """By name or by digest: they are as if they were not there."""
    digest = await push(weights, b"1")
    for ref in (WeightsRef("m"), WeightsRef("m", digest)):
        with pytest.raises(NotFound, match="There are no weights"):
            await weights.entry("rival", ref)
        with pytest.raises(NotFound):
            await weights.remove("rival", ref)
    assert await weights.listed("rival") == []


async def test_what_is_removed_is_gone_but_for_a_day(weights: PushedWeights, wall: Clock) -> None:
    """Its record stays so long, for a deploy that had just named it."""
    one, two = await push(weights, b"1"), await push(weights, b"2")
    assert await weights.remove("acme", WeightsRef("m", one[:10])) == [one]
    with pytest.raises(NotFound, match=f"the newest of that name are {two[:12]}"):
        await weights.find("acme", WeightsRef("m", one))
    assert await weights.remove("acme", WeightsRef("m")) == [two]
    assert await weights.listed("acme") == []
    record = await weights.registry.weights("acme", "m")
    assert record is not None
    assert len(record.revisions) == 2

    wall.at += REMOVED_KEPT_S + 1
    await push(weights, b"3")
    record = await weights.registry.weights("acme", "m")
    assert record is not None
    assert len(record.revisions) == 1


async def test_quotas_count_them(weights: PushedWeights, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is sent; names and revisions are bounded too."""
    registry = weights.registry
    assert isinstance(registry, MemoryRegistry)
    await push(weights, b"1")
    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(blob_bytes=50_000))
    with pytest.raises(QuotaExceeded, match="blob_bytes"):
        await weights.push(ACME, WeightsPush(pushed(part(b"x" * 60_000))))
    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(record_bytes=10))
    with pytest.raises(QuotaExceeded, match="record_bytes"):
        await weights.push(ACME, WeightsPush(pushed(part(b"2"))))
    del registry.limit_records["acme"]
    monkeypatch.setattr(weights_pushes, "MOST_WEIGHTS", 1)
    with pytest.raises(QuotaExceeded, match="which is the most"):
        await weights.push(ACME, WeightsPush(pushed(part(b"2"), name="other")))
    monkeypatch.setattr(weights_pushes, "MOST_REVISIONS", 1)
    with pytest.raises(QuotaExceeded, match="pushed 1 times"):
        await weights.push(ACME, WeightsPush(pushed(part(b"2"))))


async def test_what_is_removed_makes_room(weights: PushedWeights, monkeypatch: pytest.MonkeyPatch, wall: Clock) -> None:
    """At once, as the refusal says, though it stays in the record for a day: of that there is not more either."""
    monkeypatch.setattr(weights_pushes, "MOST_REVISIONS", 2)
    monkeypatch.setattr(weights_pushes, "MOST_WEIGHTS", 1)
    one, two = await push(weights, b"1"), await push(weights, b"2")
    with pytest.raises(QuotaExceeded, match="remove older ones"):
        await weights.push(ACME, WeightsPush(pushed(part(b"3"))))
    assert await push(weights, b"1") == one  # which it has
    for number in range(3, 8):
        wall.at += 1
        await weights.remove("acme", WeightsRef("m", two))
        two = await push(weights, f"{number}".encode())
    record = await weights.registry.weights("acme", "m")
    assert record is not None
    assert (len(record.present), len(record.revisions)) == (2, 4)

    with pytest.raises(QuotaExceeded, match="Remove some"):
        await push(weights, b"1", name="n")
    await weights.remove("acme", WeightsRef("m"))
    await push(weights, b"1", name="n")
    with pytest.raises(QuotaExceeded, match="Remove some"):
        await push(weights, b"1")
    await weights.remove("acme", WeightsRef("n"))
    with pytest.raises(QuotaExceeded, match="use one of these names, or wait a day"):
        await push(weights, b"1", name="o")
    await push(weights, b"1")


async def test_a_part_counts_as_often_as_it_is_named(weights: PushedWeights) -> None:
    """On nodes it lies as often: one blob that is named ten thousand times would fill their disks."""
    registry, content = weights.registry, b"x" * 10_000
    assert isinstance(registry, MemoryRegistry)
    await weights.blobs.put("acme", part(content).sha256, content)
    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(blob_bytes=50_000))
    with pytest.raises(QuotaExceeded, match="blob_bytes"):
        await weights.push(ACME, WeightsPush(pushed(*[part(content)] * 9)))
    done = await weights.push(ACME, WeightsPush(pushed(*[part(content)] * 3)))
    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(blob_bytes=1))
    assert (await weights.push(ACME, WeightsPush(pushed(*[part(content)] * 3)))).unchanged
    assert not done.missing


@pytest.mark.parametrize("lost", ["listing", "part"])
async def test_what_the_store_has_lost_is_mended_by_a_push(
    weights: PushedWeights, blobs: MemoryBlobs, lost: str
) -> None:
    """Of the same weights, which are not unchanged then; and others can be pushed meanwhile."""
    digest = await push(weights, b"1")
    del blobs.kept["acme", digest if lost == "listing" else part(b"1").sha256]
    await push(weights, b"1")
    entry = await weights.entry("acme", WeightsRef("m"))
    assert await blobs.read("acme", entry.parts[0].sha256) == b"1"
    del blobs.kept["acme", digest]
    assert await push(weights, b"2") != digest


async def test_a_size_that_is_a_lie_is_refused(weights: PushedWeights, blobs: MemoryBlobs) -> None:
    """Limits go by it."""
    await blobs.put("acme", part(b"123").sha256, b"123")
    lie = ArtifactPart("m", part(b"123").sha256, 1)
    with pytest.raises(BadInput, match="'m' has 3 bytes there, not 1"):
        await weights.push(ACME, WeightsPush(pushed(lie)))


async def test_a_listing_that_is_damaged_is_not_taken(weights: PushedWeights, blobs: MemoryBlobs) -> None:
    """It says which bytes a function gets."""
    digest, other = await push(weights, b"1"), await push(weights, b"2", name="n")
    blobs.kept["acme", digest] = blobs.kept["acme", other]
    for broken in (blobs.kept["acme", other], b"{}", b""):
        blobs.kept["acme", digest] = broken
        with pytest.raises(NotFound, match="is not in the blob store as it was pushed"):
            await weights.entry("acme", WeightsRef("m"))
    del blobs.kept["acme", digest]
    with pytest.raises(NotFound, match="is not in the blob store"):
        await weights.shown("acme", WeightsRef("m"))


async def test_what_functions_use_stays(weights: PushedWeights, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are named."""
    digest = await push(weights, b"1")
    monkeypatch.setattr(weights_pushes, "_uses", lambda *_: iter([("shop.hello", digest), ("shop.hi", digest)]))
    with pytest.raises(Conflict, match=r"^m is used by shop\.hello, shop\.hi: deploy without it"):
        await weights.remove("acme", WeightsRef("m"))
    assert (await weights.listed("acme"))[0].revisions[0].functions == ["shop.hello", "shop.hi"]


def signature(signer: FolderSigner, *contents: bytes, name: str = "m") -> bytes:
    parts = [SignedPart("m.safetensors", hashlib.sha256(one).hexdigest(), len(one)) for one in contents]
    return signer.sign(name, parts, 2**20)


async def sign_and_push(weights: PushedWeights, text: bytes, content: bytes, name: str = "m") -> PushResponse:
    await weights.blobs.put("acme", part(content).sha256, content)
    return await weights.push(ACME, WeightsPush(pushed(part(content), name=name), signature=text))


def trust_of(weights: PushedWeights, *signers: FolderSigner, **terms: Any) -> None:
    assert isinstance(weights.trust, MemoryTrust)
    weights.trust.records["acme"] = trusting(*signers, terms=KeyTerms(**terms))


async def test_a_signature_is_kept_with_what_was_pushed_and_shown_as_its_key_stands(weights: PushedWeights) -> None:
    """What is pushed again without keeps it, and takes another one; a new push has none of its own."""
    signer, other = signing_key(), signing_key()
    trust_of(weights, signer, other)
    text = signature(signer, b"1")
    done = await sign_and_push(weights, text, b"1")
    assert done.signed is not None
    assert (done.signed.name, done.signed.counts, done.unchanged) == ("key1", True, False)
    assert await weights.signature("acme", "m", done.digest) == text
    assert (await weights.push(ACME, WeightsPush(pushed(part(b"1"))))).signed == done.signed

    newer = await push(weights, b"2")
    assert await push(weights, b"1") == done.digest
    assert await weights.signature("acme", "m", newer) is None
    shown = {one.digest: one.signed for one in (await weights.listed("acme"))[0].revisions}
    assert shown == {newer: None, done.digest: done.signed}

    again = await sign_and_push(weights, signature(other, b"1"), b"1")
    assert again.signed is not None
    assert (again.signed.name, again.unchanged) == ("key2", True)
    trust_of(weights, other, revoked_at=1_000.0, reason="stolen")
    found = (await weights.shown("acme", WeightsRef("m"))).revision.signed
    assert found is not None
    assert (found.key, found.counts) == (again.signed.key, False)
    assert "was revoked" in found.why
    trust_of(weights, signing_key())
    found = (await weights.shown("acme", WeightsRef("m"))).revision.signed
    assert found is not None
    assert (found.name, found.why) == ("", "is not on record any more")


async def test_a_signature_that_does_not_hold_refuses_the_push_before_anything_is_asked_for(
    weights: PushedWeights,
) -> None:
    """A tampered byte, a foreign key, one that has expired or was revoked; each by its sentence."""
    signer = signing_key()
    trust_of(weights, signer)
    for text, said in (
        (signature(signer, b"2"), r"The signature of m: m\.safetensors is not what was signed"),
        (signature(signing_key(), b"1"), "which is not on record"),
        (b"{}", "it is no signature of model-signing"),
    ):
        with pytest.raises(BadInput, match=f"signature: .*{said}"):
            await weights.push(ACME, WeightsPush(pushed(part(b"1")), signature=text))
    for terms, said in (({"not_after": 999.0}, "has expired on"), ({"revoked_at": 1.0, "reason": "lost"}, "lost")):
        trust_of(weights, signer, **terms)
        with pytest.raises(BadInput, match=f"its key key1 .*{said}"):
            await weights.push(ACME, WeightsPush(pushed(part(b"1")), signature=signature(signer, b"1")))
    assert await weights.listed("acme") == []


async def test_a_signature_counts_at_the_quota_and_one_that_is_lost_is_said(weights: PushedWeights) -> None:
    """What was signed is not taken for what was not."""
    signer = signing_key()
    trust_of(weights, signer)
    text = signature(signer, b"1")
    registry = weights.registry
    assert isinstance(registry, MemoryRegistry)
    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(blob_bytes=len(text)))
    with pytest.raises(QuotaExceeded, match="blob_bytes"):
        await sign_and_push(weights, text, b"1")
    del registry.limit_records["acme"]

    done = await sign_and_push(weights, text, b"1")
    await weights.blobs.delete("acme", hashlib.sha256(text).hexdigest())
    with pytest.raises(BadInput, match="is not in the blob store as it was pushed: push them again with it"):
        await weights.signature("acme", "m", done.digest)
    assert (await sign_and_push(weights, text, b"1")).unchanged
    assert await weights.signature("acme", "m", done.digest) == text


async def test_what_is_removed_and_pushed_anew_is_not_signed(weights: PushedWeights) -> None:
    """So a signature can be taken off."""
    signer = signing_key()
    trust_of(weights, signer)
    await sign_and_push(weights, signature(signer, b"1"), b"1")
    await weights.remove("acme", WeightsRef("m"))
    assert await weights.signature("acme", "m", await push(weights, b"1")) is None
