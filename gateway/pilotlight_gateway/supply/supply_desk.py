"""What a deploy asks of the supply chain: whether its versions may be, and the documents about those that are.

review      signatures verified, policies held against what is known of each version: refused, or warned of
documents   the bill of materials, the verdict and the signatures as blobs, named in a provenance that is signed
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from pilotlight_core.host.blobs import BlobMissing, BlobStore
from pilotlight_core.host.records.policy_registry import PolicyBook
from pilotlight_core.host.supply.tenant_signatures import signed_parts, verify_folder
from pilotlight_core.host.supply.trust_keys import MemoryTrust, TrustReader
from pilotlight_core.model.artifacts.evidence_info import EvidenceInfo
from pilotlight_core.model.errors import BadInput, PolicyRefused
from pilotlight_core.model.spec import Manifest, SignedManifest, VersionRecord
from pilotlight_core.model.supply.envelopes import IN_TOTO, enveloped, signed_bytes
from pilotlight_core.model.supply.findings import PolicyOwner, PolicyVerdict, verdict_of
from pilotlight_core.model.supply.policies import PolicyRecord
from pilotlight_core.model.supply.provenance import SBOM, SIGNATURE, STATEMENT_BYTES, VERDICT, provenance_of
from pilotlight_core.model.supply.sbom import sbom_of
from pilotlight_core.model.supply.signed_folders import SignatureFault, SignedPart
from pilotlight_core.model.versions.manifest_codec import version_id
from pilotlight_gateway.supply.base_inventories import BaseInventories, MemoryInventories
from pilotlight_gateway.supply.osv_file import NoOsvFile, OsvFile
from pilotlight_gateway.supply.pickle_heads import pickled_files
from pilotlight_gateway.supply.policy_rules import SupplyFacts, age_warning, findings_of
from pilotlight_gateway.supply.signing_keys import ManifestSigner

SHOWN = 5
"""Findings in the sentence of a refusal."""
Blob = tuple[str, bytes]
"""Its digest, and its content."""
_Signed = tuple[str, tuple[SignedPart, ...], bytes]
"""What was signed, its files, and the signature."""


@dataclass(frozen=True, kw_only=True)
class VersionReview:
    """What is known and said of one version of a deploy."""

    facts: SupplyFacts
    verdict: PolicyVerdict
    signatures: Mapping[str, bytes] = field(default_factory=dict)
    """What the tenant has signed of it, verified."""


@dataclass(frozen=True, kw_only=True)
class VersionDocuments:
    """The documents about a version, and their blobs."""

    info: EvidenceInfo
    blobs: tuple[Blob, ...]


@dataclass(frozen=True, kw_only=True)
class SupplyDesk:
    """`policies` are those on record, `osv` is the operator's file of vulnerabilities."""

    blobs: BlobStore
    policies: PolicyBook
    trust: TrustReader = field(default_factory=MemoryTrust)
    inventories: BaseInventories = field(default_factory=MemoryInventories)
    osv: OsvFile = field(default_factory=OsvFile)

    def has_policy(self, tenant: str) -> bool:
        """Whether versions of a tenant are held against any policy."""
        return bool(self._held(tenant))

    async def review(
        self,
        manifests: Sequence[Manifest],
        signatures: Mapping[str, Mapping[str, bytes]],
        at: float,
        *,
        with_content: bool,
    ) -> dict[str, VersionReview]:
        """By function, what is known of a deploy's versions and what policies say.

        Args:
            signatures: by function, and by what was signed, as the tenant sent them.
            at: unix seconds.
            with_content: whether the files are in the store, so that they can be looked into.

        Raises:
            BadInput: a signature does not hold; naming it, and the file. PolicyRefused: names rules and components.
        """
        found: dict[str, VersionReview] = {}
        verified: dict[_Signed, str] = {}
        for manifest in manifests:
            own = signatures.get(manifest.function, {})
            keys = await self._signed_by(manifest, own, verified, at)
            found[manifest.function] = await self.reviewed(manifest, own, keys, {}, at, with_content=with_content)
        _refuse(found)
        return found

    async def judged(self, version: VersionRecord, at: float) -> VersionReview:
        """What policies say now of a version that there is; nothing is refused.

        Raises:
            BlobMissing, BlobsDown: its manifest cannot be read.
        """
        signed = await self.signed_manifest(version)
        manifest = msgspec.json.decode(signed.manifest, type=Manifest)
        signatures, signed_by, unsigned = await self._signatures_of(version, manifest, at)
        return await self.reviewed(manifest, signatures, signed_by, unsigned, at, with_content=True)

    async def signed_manifest(self, version: VersionRecord) -> SignedManifest:
        """The manifest of a version, of which nobody has looked at the signature.

        Raises:
            BlobMissing: it is not there, or not as it was stored, or another version's. BlobsDown.
        """
        data = await self.blobs.read(version.tenant, version.manifest_sha256)
        if hashlib.sha256(data).hexdigest() != version.manifest_sha256:
            raise BlobMissing(f"The manifest of {version.ref} in the blob store is damaged.")
        signed = msgspec.msgpack.decode(data, type=SignedManifest)
        if version_id(signed.manifest) != version.id:
            raise BlobMissing(f"The manifest on record for {version.ref} is another version's.")
        return signed

    async def reviewed(
        self,
        manifest: Manifest,
        signatures: Mapping[str, bytes],
        signed_by: Mapping[str, str],
        unsigned: Mapping[str, str],
        at: float,
        *,
        with_content: bool,
    ) -> VersionReview:
        """What is known of one version, whose signatures were looked at, and what its policies say."""
        held = self._held(manifest.tenant)
        policies = [record.policy for record in held.values()]
        lock = manifest.lock if any(each.needs_licences for each in policies) else None
        packages = await self.inventories.known(manifest.tenant, manifest.base, lock)
        facts = SupplyFacts(
            manifest=manifest, at=at, base=packages.base, licences=packages.licences, signed_by=signed_by,
            unsigned=unsigned,
        )  # fmt: skip
        if with_content and any(each.no_pickles for each in policies):
            facts = replace(facts, pickled=await pickled_files(self.blobs, manifest.tenant, manifest.artifacts))
        if any(each.needs_data for each in policies):
            facts = await self._with_data(facts)
        findings = [
            each
            for owner, record in held.items()
            for each in await asyncio.to_thread(findings_of, record.policy, owner, facts)
        ]
        revisions = {owner.value: record.revision for owner, record in held.items()}
        return VersionReview(
            facts=facts, verdict=verdict_of(findings, at, facts.data, revisions), signatures=signatures
        )

    async def documents(
        self,
        manifest: Manifest,
        signed: SignedManifest,
        review: VersionReview,
        signer: ManifestSigner,
        registered_by: float,
    ) -> VersionDocuments:
        """The documents about a version that the platform has signed; they are not stored yet.

        Args:
            signer: signs what names them all.
            registered_by: when the version was registered first, in unix seconds.

        Raises:
            BadInput: a document would be larger than nodes read.
        """
        facts, digest = review.facts, hashlib.sha256(signed.manifest).hexdigest()
        sbom = _blob(await asyncio.to_thread(sbom_of, manifest, digest, registered_by, facts.base, facts.licences))
        if len(sbom[1]) > STATEMENT_BYTES:
            raise BadInput(
                f"artifacts: the bill of materials of {manifest.function} has {len(sbom[1]) >> 20} MiB, more than the "
                f"{STATEMENT_BYTES >> 20} that nodes read: have fewer files, or shorter paths.", field="artifacts",
            )  # fmt: skip
        verdict = _blob(msgspec.json.encode(review.verdict))
        texts = {of: _blob(text) for of, text in sorted(review.signatures.items())}
        named = {SBOM: sbom[0], VERDICT: verdict[0]} | {f"{SIGNATURE}{of}": blob[0] for of, blob in texts.items()}
        base_digest = facts.base.digest if facts.base is not None else ""
        content = provenance_of(manifest, digest, named, facts.at, base_digest)
        by, signature = await signer.sign_statement(signed_bytes(IN_TOTO, content))
        statement = _blob(enveloped(IN_TOTO, content, by, signature))
        info = EvidenceInfo(
            statement=statement[0], sbom=sbom[0], verdict=verdict[0],
            signatures={of: blob[0] for of, blob in texts.items()},
        )  # fmt: skip
        return VersionDocuments(info=info, blobs=(sbom, verdict, *texts.values(), statement))

    def warnings(self, reviews: Mapping[str, VersionReview]) -> tuple[str, ...]:
        """What a deployer should know of findings that refuse nothing, each once."""
        told = [
            f"policy ({each.of.value}): {each.says}"
            for review in reviews.values()
            for each in review.verdict.findings
            if not each.enforced
        ]
        ages = [age_warning(review.facts) for review in reviews.values()]
        return tuple(dict.fromkeys(filter(None, (*told, *ages))))

    def _held(self, tenant: str) -> dict[PolicyOwner, PolicyRecord]:
        """The policies that versions of a tenant are held against."""
        found = {PolicyOwner.OPERATOR: self.policies.policy(), PolicyOwner.TENANT: self.policies.policy(tenant)}
        return {owner: record for owner, record in found.items() if record is not None}

    async def _with_data(self, facts: SupplyFacts) -> SupplyFacts:
        try:
            data = await asyncio.to_thread(self.osv.data)
        except NoOsvFile as error:
            return replace(facts, data_fault=error.detail)
        return facts if data is None else replace(facts, data=data.about(facts.at), known=data.of)

    async def _signed_by(
        self, manifest: Manifest, signatures: Mapping[str, bytes], verified: dict[_Signed, str], at: float
    ) -> dict[str, str]:
        """By what was signed, the key. Functions share code and artifacts: what is `verified` is not again.

        Raises:
            BadInput: one does not hold.
        """
        trust = await self.trust.read(manifest.tenant) if signatures else None
        found: dict[str, str] = {}
        for of, text in signatures.items():
            parts = tuple(signed_parts(manifest, of))
            mark = of, parts, text
            if mark not in verified:
                try:
                    key = await asyncio.to_thread(verify_folder, of, text, parts, trust, at)
                except SignatureFault as error:
                    raise BadInput(f"signatures: {error}", field="signatures") from None
                verified[mark] = key.id
            found[of] = verified[mark]
        return found

    async def _signatures_of(
        self, version: VersionRecord, manifest: Manifest, at: float
    ) -> tuple[dict[str, bytes], dict[str, str], dict[str, str]]:
        """The signatures that a version has, by which keys those are that hold, and why others do not."""
        named = version.evidence.signatures if version.evidence is not None else {}
        trust = await self.trust.read(version.tenant) if named else None
        texts: dict[str, bytes] = {}
        signed_by: dict[str, str] = {}
        unsigned: dict[str, str] = {}
        for of, sha256 in named.items():
            try:
                texts[of] = await self.blobs.read(version.tenant, sha256)
                signed_by[of] = verify_folder(of, texts[of], signed_parts(manifest, of), trust, at).id
            except BlobMissing:
                unsigned[of] = f"The signature of {of} is not in the blob store."
            except SignatureFault as error:
                unsigned[of] = str(error)
        return texts, signed_by, unsigned


def _refuse(reviews: Mapping[str, VersionReview]) -> None:
    """Raise PolicyRefused for what is enforced."""
    found = {
        (each.rule, each.component, each.of): each for review in reviews.values() for each in review.verdict.refused
    }
    if not found:
        return
    shown = list(found.values())[:SHOWN]
    more = f" And {len(found) - len(shown)} more." if len(found) > len(shown) else ""
    says = " ".join(f"{each.says} (rule {each.rule.value}, of the {each.of.value})" for each in shown)
    findings = [
        {"rule": each.rule.value, "component": each.component, "of": each.of.value, "says": each.says}
        for each in list(found.values())[:100]
    ]
    raise PolicyRefused(f"{says}{more}", findings=findings)


def _blob(data: bytes) -> Blob:
    return hashlib.sha256(data).hexdigest(), data
