"""Verifies the documents about a version before it is loaded, and what its tenant has signed of it.

The platform has signed the version's provenance, which names its bill of materials, what policies said, and the
tenant's signatures, each by its digest. So a document that was changed, or is another version's, stops the start. The
manifest, which is signed too, says that there are documents and what the tenant has signed: who takes them off the
record stops the start as well. What was verified is not fetched again for the next container; whether keys still count
is asked each time.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from pilotlight_core.bus import BusError
from pilotlight_core.host.blobs import BlobMissing
from pilotlight_core.host.signing import Verifier
from pilotlight_core.host.supply.tenant_signatures import signed_parts, verify_folder
from pilotlight_core.host.supply.trust_keys import TrustReader
from pilotlight_core.model.artifacts.evidence_info import EvidenceInfo
from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_core.model.spec import Manifest, SignedManifest
from pilotlight_core.model.supply.envelopes import Envelope, EnvelopeFault, bytes_of_base64, read_envelope
from pilotlight_core.model.supply.provenance import (
    SBOM,
    SIGNATURE,
    STATEMENT_BYTES,
    VERDICT,
    ProvenanceFault,
    documents_of,
)
from pilotlight_core.model.supply.signed_folders import SignatureFault, read_signature
from pilotlight_core.model.supply.trust_records import TrustRecord
from pilotlight_core.model.versions.manifest_codec import EVIDENCE
from pilotlight_runtime.containers.files.bundle import CannotVerify, SignatureRefused
from pilotlight_runtime.containers.files.version_files import VersionFiles

REMEMBERED = 1_024
"""Versions whose documents were verified."""


class KeyVerifier(Protocol):
    async def verifier(self, name: str) -> Verifier:
        """Raises BadSignature, NoKey, and ConnectionError."""
        ...


class _Verified(NamedTuple):
    key: str
    """By which the provenance is signed."""
    hints: Mapping[str, str]
    """What the tenant has signed, and by which of its keys."""


class EvidenceCheck:
    """`trust` says whose signatures count; None: nobody's do."""

    def __init__(
        self,
        files: VersionFiles,
        keys: KeyVerifier,
        trust: TrustReader | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._files = files
        self._keys = keys
        self._trust = trust
        self._wall = wall
        self._verified: OrderedDict[tuple[str, str], _Verified] = OrderedDict()

    async def check(self, bind: Bind, manifest: Manifest, signed: SignedManifest) -> None:
        """Verify what there is.

        Raises:
            CannotVerify: naming the document. BadSignature, NoKey, BlobsDown. ConnectionError: keys cannot be read.
        """
        evidence = bind.evidence
        if evidence is None:
            if EVIDENCE in manifest.needs:
                raise CannotVerify(f"{bind.version} has documents, and they are not named: deploy it again.")
            return
        if missing := sorted(set(manifest.signed) - set(evidence.signatures)):
            raise CannotVerify(
                f"{bind.version} is signed by its tenant, and the signature of {missing[0]} is not named: deploy it "
                "again."
            )
        mark = bind.version, evidence.statement
        known = self._verified.get(mark)
        trust = await self._trust_of(bind.tenant) if evidence.signatures else None
        if known is None:
            known = await self._documents(bind, evidence, manifest, signed, trust)
            self._verified[mark] = known
            if len(self._verified) > REMEMBERED:
                self._verified.popitem(last=False)
            return
        await self._keys.verifier(known.key)  # it may count no more
        for of, hint in known.hints.items():
            key = trust.hinted(hint) if trust is not None else None
            why = "is not on record any more" if key is None else key.terms.fault(self._wall())
            if why:
                raise SignatureRefused(f"The signature of {of} of {bind.version}: its key {hint[:16]} {why}.")

    async def _documents(
        self, bind: Bind, evidence: EvidenceInfo, manifest: Manifest, signed: SignedManifest, trust: TrustRecord | None
    ) -> _Verified:
        statement = await self._read(bind, evidence.statement, "provenance")
        envelope, key = await self._envelope(bind, statement)
        digest = hashlib.sha256(signed.manifest).hexdigest()
        try:
            named = documents_of(envelope.content, digest)
        except (ProvenanceFault, EnvelopeFault) as error:
            raise CannotVerify(f"{error} It was given for {bind.version}.") from None
        given = {SBOM: evidence.sbom, VERDICT: evidence.verdict}
        given |= {f"{SIGNATURE}{of}": sha256 for of, sha256 in evidence.signatures.items()}
        for name in sorted({*named, *given}):
            if named.get(name) != given.get(name):
                raise CannotVerify(
                    f"The {_document_text(name)} of {bind.version} is not the one that was signed with it."
                )
        reads = [self._read(bind, sha256, _document_text(name)) for name, sha256 in given.items()]
        texts = dict(zip(given, await asyncio.gather(*reads), strict=True))
        at, hints = self._wall(), dict[str, str]()
        for of in evidence.signatures:
            text = texts[f"{SIGNATURE}{of}"]
            try:
                verify_folder(of, text, signed_parts(manifest, of), trust, at)
                hints[of] = read_signature(text).hint
            except SignatureFault as error:
                raise SignatureRefused(f"{error} It is of {bind.version}.") from None
        return _Verified(key, hints)

    async def _envelope(self, bind: Bind, statement: bytes) -> tuple[Envelope, str]:
        """The signed envelope, and the id of the platform's key that has signed it."""
        try:
            envelope = read_envelope(statement)
            data, (first, *_) = envelope.signed, envelope.signatures or (None,)
            signature = bytes_of_base64(first.sig) if first is not None else b""
        except EnvelopeFault as error:
            raise CannotVerify(f"The provenance of {bind.version} cannot be read: {error}.") from None
        if first is None:
            raise CannotVerify(f"The provenance of {bind.version} is not signed.")
        verifier = await self._keys.verifier(first.keyid)
        if not verifier.has_signed(data, signature):
            raise CannotVerify(f"The provenance of {bind.version} was changed after it was signed.")
        return envelope, first.keyid

    async def _read(self, bind: Bind, sha256: str, what: str) -> bytes:
        data = bytearray()
        try:
            async for piece in self._files.get(bind, sha256):
                data += piece
                if len(data) > STATEMENT_BYTES:
                    break
        except BlobMissing:
            raise CannotVerify(f"The {what} of {bind.version} is not in the blob store.") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise CannotVerify(f"The {what} of {bind.version} in the blob store is damaged.")
        return bytes(data)

    async def _trust_of(self, tenant: str) -> TrustRecord | None:
        if self._trust is None:
            return None
        try:
            return await self._trust.read(tenant)
        except BusError as error:
            raise ConnectionError(f"the keys of {tenant} cannot be read: {error}") from error


def _document_text(name: str) -> str:
    """A document's name, for people."""
    if name.startswith(SIGNATURE):
        return f"signature of {name.removeprefix(SIGNATURE)}"
    return {SBOM: "bill of materials", VERDICT: "policy verdict"}.get(name, name)
