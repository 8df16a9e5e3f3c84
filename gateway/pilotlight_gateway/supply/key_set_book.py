"""The platform's set of keys, as an operator publishes it, and signing kept versions again by the present key."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import msgspec
from msgspec.structs import replace

from pilotlight_core.host.blobs import BlobMissing, BlobStore
from pilotlight_core.host.key_sets import KeySet, SignedKeySet, newest_set
from pilotlight_core.host.signing import BadSignature, NoKey
from pilotlight_core.model.api.supply.supply_api import RefusedVersion, ResignedVersions
from pilotlight_core.model.errors import BadInput, Conflict
from pilotlight_core.model.spec import SignedManifest, VersionRecord
from pilotlight_core.model.supply.envelopes import EnvelopeFault, bytes_of_base64, enveloped, read_envelope
from pilotlight_gateway.supply.signing_keys import ManifestSigner, verifier_of
from pilotlight_gateway.tenancy.registry_port import RegistryPort


class KeySetStore(Protocol):
    async def read(self) -> SignedKeySet | None: ...
    async def offer(self, offered: SignedKeySet, *, adopt: bool = False) -> None: ...


@dataclass
class MemoryKeySets:
    """The `KeySetStore` of tests."""

    present: SignedKeySet | None = None

    async def read(self) -> SignedKeySet | None:
        return self.present

    async def offer(self, offered: SignedKeySet, *, adopt: bool = False) -> None:
        self.present = newest_set(self.present, offered, adopt=adopt)


async def publish_key_set(store: KeySetStore, offered: SignedKeySet) -> KeySet:
    """Write down a set that an operator has signed.

    Raises:
        BadInput: it is none, or not signed by the key that it names. Conflict: another operator's key signs the
            platform's sets, or it is older than the present one.
    """
    try:
        wanted = offered.check()
    except BadSignature as error:
        raise BadInput(error.detail) from None
    present = await store.read()
    try:
        chosen = newest_set(present, offered, adopt=False)
    except BadSignature as error:
        raise Conflict(
            f"{error.detail} A gateway adopts another operator's at its start: --adopt manifest_key."
        ) from None
    if chosen is not None and present is not None and chosen == present and offered != present:
        raise Conflict(
            f"The set is of {wanted.serial}, and the platform's is of {present.read().serial}, which is later."
        )
    await store.offer(offered)
    return wanted


@dataclass(frozen=True, kw_only=True)
class VersionSigner:
    """Signs kept versions again, so that they outlive the key by which they were signed."""

    registry: RegistryPort
    blobs: BlobStore
    signer: ManifestSigner

    async def sign_again(self, present: KeySet, after: str, most: int, at: float) -> ResignedVersions:
        """Those of the next `most` versions behind the id `after` that another key than the present one has signed.

        What a key has signed that does not count any more is not signed again: whoever has it can have made it.
        """
        ids = sorted(version.id for version in _versions(self.registry) if version.id > after)[:most]
        current = (await self.signer.sign_statement(b"")).key_id
        signed, refused = 0, list[RefusedVersion]()
        for version_id in ids:
            version = self.registry.version(version_id)
            if version is None:
                continue
            try:
                signed += await self._sign(version, present, current, at)
            except (BadSignature, BlobMissing, msgspec.DecodeError, EnvelopeFault, Conflict, NoKey) as error:
                why = getattr(error, "detail", "") or str(error)
                refused.append(RefusedVersion(version=version_id, tenant=version.tenant, ref=version.ref, why=why))
        following = ids[-1] if len(ids) == most else ""
        return ResignedVersions(looked_at=len(ids), signed=signed, refused=tuple(refused), next=following)

    async def _sign(self, version: VersionRecord, present: KeySet, current: str, at: float) -> bool:
        """Whether it had to be signed again."""
        data = await self.blobs.read(version.tenant, version.manifest_sha256)
        before = msgspec.msgpack.decode(data, type=SignedManifest)
        if before.key_id == current:
            return False
        manifest = verifier_of(present, before.key_id, at).verify(before)
        fresh = await self.signer.sign(manifest)
        if fresh.manifest != before.manifest:  # an earlier release wrote it otherwise: the bytes are what is named
            by, signature = await self.signer.sign_statement(before.manifest)
            fresh = SignedManifest(manifest=before.manifest, key_id=by, signature=signature)
        digest = await self._put(version.tenant, msgspec.msgpack.encode(fresh))
        evidence = version.evidence
        if evidence is not None:
            envelope = read_envelope(await self.blobs.read(version.tenant, evidence.statement))
            first = envelope.signatures[0]
            if not verifier_of(present, first.keyid, at).has_signed(envelope.signed, bytes_of_base64(first.sig)):
                raise BadSignature("Its provenance was changed after it was signed.")
            by, signature = await self.signer.sign_statement(envelope.signed)
            renewed = enveloped(envelope.payload_type, envelope.content, by, signature)
            evidence = replace(evidence, statement=await self._put(version.tenant, renewed))
        # As a deploy renews it, so that nobody deletes it meanwhile.
        await self.registry.put_version(replace(version, manifest_sha256=digest, evidence=evidence, created_at=at))
        return True

    async def _put(self, tenant: str, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        await self.blobs.put(tenant, digest, data)
        return digest


def _versions(registry: RegistryPort) -> Iterable[VersionRecord]:
    """Those that apps keep."""
    kept = {id_ for app in registry.iter_apps() for ids in app.versions.values() for id_ in ids}
    kept |= {id_ for app in registry.iter_apps() for id_ in app.functions.values()}
    return (version for id_ in kept if (version := registry.version(id_)) is not None)
