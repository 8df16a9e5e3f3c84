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
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

from pilotlight_core.bus import BusError
from pilotlight_core.host.blobs import BlobMissing, BlobsDown
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
STATEMENT = "statement"
"""Names the provenance among the documents that it names."""


class KeyVerifier(Protocol):
    async def verifier(self, name: str) -> Verifier:
        """Raises BadSignature, NoKey, and ConnectionError."""
        ...


class _Verified(NamedTuple):
    key: str
    """By which the provenance is signed."""
    hints: Mapping[str, str]
    """What the tenant has signed, and by which of its keys."""


class Documents(NamedTuple):
    """What was fetched for one start, not verified yet."""

    trust: TrustRecord | None
    """Whose signatures count for the tenant, as of now."""
    texts: Mapping[str, bytes | CannotVerify | BlobsDown]
    """By name, each document, or why it is not to be had."""
    known: _Verified | None
    """What was found for a start before: then there are no texts."""

    def text(self, name: str) -> bytes:
        """Raises CannotVerify, BlobsDown"""
        found = self.texts[name]
        if not isinstance(found, bytes):
            raise found
        return found


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

    async def fetch(self, bind: Bind) -> Documents:
        """What is to be verified of the version, all at once: the store may be far away.

        Raises:
            ConnectionError: the tenant's keys cannot be read.
        """
        evidence = bind.evidence
        if evidence is None:
            return Documents(None, {}, None)
        known = self._verified.get((bind.version, evidence.statement))
        wanted = {STATEMENT: evidence.statement, **_named_by(evidence)} if known is None else {}
        reads = asyncio.gather(*(self._read(bind, sha256, _document_text(name)) for name, sha256 in wanted.items()))
        both: tuple[Awaitable[Any], ...] = (self._trust_of(bind.tenant) if evidence.signatures else _nobody(), reads)
        trust, read = await asyncio.gather(*both, return_exceptions=True)  # they have ended, whatever came of them
        if isinstance(trust, BaseException):
            raise trust
        if isinstance(read, BaseException):
            raise read
        return Documents(trust, dict(zip(wanted, read, strict=True)), known)

    async def check(self, bind: Bind, manifest: Manifest, signed: SignedManifest, documents: Documents) -> None:
        """Verify what was fetched for this start.

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
        trust, known = documents.trust, documents.known
        if known is None:
            verified = await self._verify(bind, evidence, manifest, signed, documents)
            self._verified[bind.version, evidence.statement] = verified
            if len(self._verified) > REMEMBERED:
                self._verified.popitem(last=False)
            return
        await self._keys.verifier(known.key)  # it may count no more
        for of, hint in known.hints.items():
            key = trust.hinted(hint) if trust is not None else None
            why = "is not on record any more" if key is None else key.terms.fault(self._wall())
            if why:
                raise SignatureRefused(f"The signature of {of} of {bind.version}: its key {hint[:16]} {why}.")

    async def _verify(
        self, bind: Bind, evidence: EvidenceInfo, manifest: Manifest, signed: SignedManifest, documents: Documents
    ) -> _Verified:
        envelope, key = await self._envelope(bind, documents.text(STATEMENT))
        digest = hashlib.sha256(signed.manifest).hexdigest()
        try:
            named = documents_of(envelope.content, digest)
        except (ProvenanceFault, EnvelopeFault) as error:
            raise CannotVerify(f"{error} It was given for {bind.version}.") from None
        given = _named_by(evidence)
        for name in sorted({*named, *given}):
            if named.get(name) != given.get(name):
                raise CannotVerify(
                    f"The {_document_text(name)} of {bind.version} is not the one that was signed with it."
                )
        texts = {name: documents.text(name) for name in given}
        at, hints = self._wall(), dict[str, str]()
        for of in evidence.signatures:
            text = texts[f"{SIGNATURE}{of}"]
            try:
                verify_folder(of, text, signed_parts(manifest, of), documents.trust, at)
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

    async def _read(self, bind: Bind, sha256: str, what: str) -> bytes | CannotVerify | BlobsDown:
        data = bytearray()
        try:
            async for piece in self._files.get(bind, sha256):
                data += piece
                if len(data) > STATEMENT_BYTES:
                    break
        except BlobMissing:
            return CannotVerify(f"The {what} of {bind.version} is not in the blob store.")
        except BlobsDown as error:
            return error
        if hashlib.sha256(data).hexdigest() != sha256:
            return CannotVerify(f"The {what} of {bind.version} in the blob store is damaged.")
        return bytes(data)

    async def _trust_of(self, tenant: str) -> TrustRecord | None:
        if self._trust is None:
            return None
        try:
            return await self._trust.read(tenant)
        except BusError as error:
            raise ConnectionError(f"the keys of {tenant} cannot be read: {error}") from error


async def _nobody() -> None:
    """Whose signatures count where nothing is signed."""


def _named_by(evidence: EvidenceInfo) -> dict[str, str]:
    """By name, the digest of each document but the provenance."""
    given = {SBOM: evidence.sbom, VERDICT: evidence.verdict}
    return given | {f"{SIGNATURE}{of}": sha256 for of, sha256 in evidence.signatures.items()}


def _document_text(name: str) -> str:
    """A document's name, for people."""
    if name.startswith(SIGNATURE):
        return f"signature of {name.removeprefix(SIGNATURE)}"
    return {STATEMENT: "provenance", SBOM: "bill of materials", VERDICT: "policy verdict"}.get(name, name)
