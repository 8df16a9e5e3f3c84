"""Nothing is loaded of a version whose documents, or whose tenant's signature, are not what they were signed as."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotlight.packing.folder_signing import FolderSigner
from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.host.signing import BadSignature, Signer, Verifier
from pilotlight_core.host.supply.tenant_signatures import CODE, signed_parts
from pilotlight_core.host.supply.trust_keys import MemoryTrust
from pilotlight_core.model.artifacts.evidence_info import EvidenceInfo
from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart, FileEntry, Manifest, SignedManifest
from pilotlight_core.model.supply.envelopes import IN_TOTO, enveloped, signed_bytes
from pilotlight_core.model.supply.key_terms import KeyTerms
from pilotlight_core.model.supply.provenance import SBOM, SIGNATURE, VERDICT, provenance_of
from pilotlight_core.model.versions.manifest_codec import EVIDENCE, version_id
from pilotlight_core.model.versions.pushed_weights import weights_digest
from pilotlight_runtime.containers.files.bundle import CannotVerify, SignatureRefused
from pilotlight_runtime.containers.files.evidence_check import EvidenceCheck
from pilotlight_runtime.containers.files.file_cache import FileCache
from pilotlight_runtime.containers.files.staging import Stager
from pilotlight_runtime.containers.files.trusted_keys import TrustedKeys
from tests.builders.specs import function_spec, manifest
from tests.builders.supply import AT, DAY_S, signing_key, trusting
from tests.runtime.local_files import stored_files

CODE_FILE = FileEntry("app.py", hashlib.sha256(b"code").hexdigest(), 4)
SHARD = 8
PARTS = (
    ArtifactPart("m.bin", "1" * 64, 8),
    ArtifactPart("m.bin", "2" * 64, 3),
    ArtifactPart("t.json", "3" * 64, 1),
)
WEIGHTS = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="llama", digest=weights_digest(PARTS), parts=PARTS)


@dataclass
class Keys:
    """The platform's keys, as a node knows them."""

    known: dict[str, Verifier]
    asked: int = 0

    async def verifier(self, name: str) -> Verifier:
        self.asked += 1
        if name not in self.known:
            raise BadSignature(f"The key {name} was revoked on a day: stolen.")
        return self.known[name]


@dataclass
class NodeWorld:
    """A version with its documents in a store, and what a node verifies them with."""

    folder: Path
    tenant_key: FolderSigner = field(default_factory=signing_key)
    blobs: MemoryBlobs = field(default_factory=lambda: MemoryBlobs(lambda: AT))
    at: float = AT

    def __post_init__(self) -> None:
        self.platform = Signer.load_or_create(self.folder / "keys")
        self.keys = Keys({self.platform.key_id: Verifier(self.platform.public)})
        self.trust = MemoryTrust({"acme": trusting(self.tenant_key)})
        self.check = EvidenceCheck(stored_files(self.blobs), self.keys, self.trust, lambda: self.at)

    async def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        await self.blobs.put("acme", digest, data)
        return digest

    async def version(self, name: str = "rank", *signed: str, signer: Signer | None = None) -> MadeVersion:
        """A version with all of its documents, of which the tenant has signed those names."""
        made = manifest(function_spec(name), CODE_FILE, tenant="acme", artifacts=(WEIGHTS,))
        if signed:
            made = msgspec.structs.replace(made, needs=(EVIDENCE,), signed=signed)
        whole = self.platform.sign(made)
        digest = hashlib.sha256(whole.manifest).hexdigest()
        documents = {SBOM: await self.put(f"sbom of {name}".encode()), VERDICT: await self.put(b"verdict")}
        signatures: dict[str, str] = {}
        for of in signed:
            text = self.tenant_key.sign(of, signed_parts(made, of), SHARD)
            signatures[of] = documents[f"{SIGNATURE}{of}"] = await self.put(text)
        content = provenance_of(made, digest, documents, AT)
        by = signer or self.platform
        statement = enveloped(IN_TOTO, content, by.key_id, by.sign_data(signed_bytes(IN_TOTO, content)))
        evidence = EvidenceInfo(
            statement=await self.put(statement), sbom=documents[SBOM], verdict=documents[VERDICT],
            signatures=signatures,
        )  # fmt: skip
        return MadeVersion(made, whole, evidence)

    async def try_start(self, version: MadeVersion, **changed: Any) -> None:
        """What happens before a container is made."""
        evidence = msgspec.structs.replace(version.evidence, **changed)
        await self.start(version.bind(evidence), version.manifest, version.signed)

    async def start(self, bind: Bind, manifest: Manifest, signed: SignedManifest) -> None:
        """The same, of a command and a manifest that need not belong together."""
        await self.check.check(bind, manifest, signed, await self.check.fetch(bind))


@dataclass
class MadeVersion:
    manifest: Manifest
    signed: SignedManifest
    evidence: EvidenceInfo

    def bind(self, evidence: EvidenceInfo | None) -> Bind:
        return Bind(
            epoch=1, container="ctr_1", version=version_id(self.signed.manifest), tenant="acme", manifest_sha256="",
            slice="cpu-1", evidence=evidence,
        )  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> NodeWorld:
    return NodeWorld(tmp_path)


async def test_what_is_whole_is_loaded_and_read_once(world: NodeWorld) -> None:
    """The next container of the version reads no document, and asks for keys all the same."""
    version = await world.version("rank", CODE)
    await world.try_start(version)
    asked = world.keys.asked
    for digest in version.evidence.digests:
        await world.blobs.delete("acme", digest)

    await world.try_start(version)

    assert world.keys.asked == asked + 1


class CrowdedBlobs(MemoryBlobs):
    """A store that answers no read until so many are asked for."""

    crowd = asyncio.Barrier(1)

    async def read(self, tenant: str, sha256: str) -> bytes:
        await self.crowd.wait()
        return await super().read(tenant, sha256)


async def test_a_start_asks_for_all_that_it_verifies_at_once(tmp_path: Path) -> None:
    """A store or a gateway may be far away: manifest, provenance, the two that it names, and a signature."""
    blobs = CrowdedBlobs(lambda: AT)
    world = NodeWorld(tmp_path, blobs=blobs)
    version = await world.version("rank", CODE)
    stager = Stager(
        stored_files(blobs), TrustedKeys(tmp_path / "keys"), FileCache(tmp_path / "cache"), evidence=world.check
    )
    wanted = await world.put(msgspec.msgpack.encode(version.signed))
    blobs.crowd = asyncio.Barrier(5)

    async with asyncio.timeout(20):
        made = await stager.manifest(msgspec.structs.replace(version.bind(version.evidence), manifest_sha256=wanted))

    assert made == version.manifest


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("statement", "The provenance of ver_.* in the blob store is damaged"),
        ("sbom", "The bill of materials of ver_.* in the blob store is damaged"),
        ("verdict", "The policy verdict of ver_.* in the blob store is damaged"),
        ("code", "The signature of code of ver_.* in the blob store is damaged"),
    ],
)
async def test_one_flipped_bit_of_a_document_stops_the_start(world: NodeWorld, document: str, said: str) -> None:
    """And the document is named; so is one that is gone."""
    version = await world.version("rank", CODE)
    digest = version.evidence.signatures["code"] if document == "code" else getattr(version.evidence, document)
    data = await world.blobs.read("acme", digest)
    world.blobs.kept["acme", digest] = bytes([data[0] ^ 1]) + data[1:]

    with pytest.raises(CannotVerify, match=said):
        await world.try_start(version)

    await world.blobs.delete("acme", digest)
    with pytest.raises(CannotVerify, match=said.replace("in the blob store is damaged", "is not in the blob store")):
        await world.try_start(version)


async def test_documents_of_two_versions_cannot_be_swapped(world: NodeWorld) -> None:
    """Neither one of them, nor all together."""
    one, other = await world.version("one", CODE), await world.version("other", CODE)

    with pytest.raises(CannotVerify, match=r"The bill of materials of ver_\w+ is not the one that was signed with it"):
        await world.try_start(one, sbom=other.evidence.sbom)
    with pytest.raises(CannotVerify, match=r"The provenance is of another version\. It was given for ver_"):
        await world.start(one.bind(other.evidence), one.manifest, one.signed)


async def test_a_signature_that_is_left_out_or_added_is_missed(world: NodeWorld) -> None:
    """The manifest says that the tenant has signed, and the provenance by what."""
    version = await world.version("rank", CODE)
    with pytest.raises(CannotVerify, match="signed by its tenant, and the signature of code is not named"):
        await world.try_start(version, signatures={})
    with pytest.raises(CannotVerify, match=r"The signature of words of ver_.* is not the one"):
        await world.try_start(version, signatures=version.evidence.signatures | {"words": version.evidence.sbom})


async def test_documents_cannot_be_taken_off_a_version_whose_manifest_says_that_it_has_them(world: NodeWorld) -> None:
    """Of one that a policy was held against too, which nobody has signed; one of a release before has none."""
    version = await world.version("rank", CODE)
    with pytest.raises(CannotVerify, match=r"ver_.* has documents, and they are not named: deploy it again"):
        await world.start(version.bind(None), version.manifest, version.signed)

    plain = await world.version("plain")
    await world.start(plain.bind(None), plain.manifest, plain.signed)
    held = msgspec.structs.replace(plain.manifest, needs=(EVIDENCE,))
    with pytest.raises(CannotVerify, match="has documents, and they are not named"):
        await world.start(plain.bind(None), held, plain.signed)


async def test_a_provenance_from_before_it_was_signed_is_no_way_around_the_signature(world: NodeWorld) -> None:
    """Though the platform has signed it, about the very manifest: also where the node knows the version."""
    version = await world.version("rank", CODE)
    digest = hashlib.sha256(version.signed.manifest).hexdigest()
    documents = {SBOM: version.evidence.sbom, VERDICT: version.evidence.verdict}
    content = provenance_of(version.manifest, digest, documents, AT)
    signature = world.platform.sign_data(signed_bytes(IN_TOTO, content))
    statement = await world.put(enveloped(IN_TOTO, content, world.platform.key_id, signature))

    for _ in range(2):
        with pytest.raises(CannotVerify, match="the signature of code is not named"):
            await world.try_start(version, statement=statement, signatures={})
        await world.try_start(version)


async def test_only_the_platforms_keys_sign_provenance(world: NodeWorld, tmp_path: Path) -> None:
    """A foreign key, one that is revoked meanwhile, and a statement that was changed under a known one's name."""
    foreign = await world.version("rank", CODE, signer=Signer.load_or_create(tmp_path / "foreign"))
    with pytest.raises(BadSignature, match="was revoked"):
        await world.try_start(foreign)

    version = await world.version("rank", CODE)
    envelope = (await world.blobs.read("acme", version.evidence.statement)).replace(b'"sig":"', b'"sig":"AAAA')
    with pytest.raises(CannotVerify, match=r"was changed after it was signed|cannot be read"):
        await world.try_start(version, statement=await world.put(envelope))
    for text in (b"{}", b'{"payload":"e30=","payloadType":"t","signatures":[]}'):
        with pytest.raises(CannotVerify, match=r"cannot be read|is not signed"):
            await world.try_start(version, statement=await world.put(text))

    await world.try_start(version)
    world.keys.known.clear()
    with pytest.raises(BadSignature, match="was revoked"):
        await world.try_start(version)


Change = Callable[[NodeWorld], None]


def _expire(world: NodeWorld) -> None:
    world.trust.records["acme"] = trusting(world.tenant_key, terms=KeyTerms(not_after=AT - DAY_S))


def _revoke(world: NodeWorld) -> None:
    world.trust.records["acme"] = trusting(world.tenant_key, terms=KeyTerms(revoked_at=AT, reason="stolen"))


def _replace(world: NodeWorld) -> None:
    world.trust.records["acme"] = trusting(signing_key())


@pytest.mark.parametrize(
    ("change", "said"),
    [(_expire, "has expired on"), (_revoke, "was revoked on .*: stolen"), (_replace, "not on record")],
)
@pytest.mark.parametrize("was_verified", [False, True])
async def test_a_tenants_key_that_counts_no_more_stops_the_next_start(
    world: NodeWorld, change: Change, said: str, was_verified: bool
) -> None:
    """Whether the node knows the version or not; and it is told to the tenant, whose it is to mend."""
    version = await world.version("rank", CODE)
    if was_verified:
        await world.try_start(version)
    change(world)

    with pytest.raises(SignatureRefused, match=f"The signature of code.*{said}"):
        await world.try_start(version)


async def test_added_code_is_not_what_the_tenant_has_signed(world: NodeWorld) -> None:
    """Though the platform would have signed the manifest: a `.gitignore`, a new file, another content."""
    for entry in (FileEntry(".gitignore", "1" * 64, 1), FileEntry("new.py", "1" * 64, 1)):
        version = await world.version("rank", CODE)
        fuller = msgspec.structs.replace(version.manifest, files=(*version.manifest.files, entry))
        with pytest.raises(SignatureRefused, match=f"The signature of code: .*{entry.path}"):
            await world.start(version.bind(version.evidence), fuller, version.signed)


@pytest.mark.parametrize("number", range(3))
async def test_weights_that_are_not_as_they_were_signed_are_not_loaded(world: NodeWorld, number: int) -> None:
    """A byte of any part; and their key is asked about at each start, as that of code."""
    version = await world.version("rank", "llama")
    parts = [*WEIGHTS.parts]
    parts[number] = ArtifactPart(parts[number].path, "9" * 64, parts[number].size)
    other = msgspec.structs.replace(version.manifest, artifacts=(msgspec.structs.replace(WEIGHTS, parts=tuple(parts)),))
    said = rf"The signature of llama: {parts[number].path}.* is not what was signed"
    with pytest.raises(SignatureRefused, match=said):
        await world.start(version.bind(version.evidence), other, version.signed)

    await world.try_start(version)
    with pytest.raises(CannotVerify, match="the signature of llama is not named"):
        await world.try_start(version, signatures={})
    _revoke(world)
    with pytest.raises(SignatureRefused, match=r"The signature of llama of ver_.* was revoked on .*: stolen"):
        await world.try_start(version)
