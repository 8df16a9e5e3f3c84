"""What a tenant has signed of weights that it has pushed: kept with them, and given along with each deploy of them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

from pilotlight_core.host.blobs import BlobMissing, BlobStore
from pilotlight_core.host.supply.tenant_signatures import CODE, verify_folder
from pilotlight_core.host.supply.trust_keys import TrustReader
from pilotlight_core.model.api.weights_api import SignatureInfo
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import ArtifactEntry, ArtifactPart
from pilotlight_core.model.supply.signed_folders import SignatureFault, SignedPart
from pilotlight_core.model.supply.trust_records import KEY_DIGITS, TrustedKey, TrustRecord
from pilotlight_core.model.versions.pushed_weights import WeightsRecord


async def check_pushed(trust: TrustReader, tenant: str, pushed: ArtifactEntry, text: bytes, at: float) -> TrustedKey:
    """The key on record that has signed what is pushed.

    Raises:
        BadInput: the signature does not hold; naming the file, or the key.
    """
    if pushed.name == CODE:
        why = f"weights that are called {CODE} cannot be signed: name them otherwise"
        raise BadInput(f"signature: {why}.", field="signature")
    record, parts = await trust.read(tenant), _signed(pushed.parts)
    try:
        return await asyncio.to_thread(verify_folder, pushed.name, text, parts, record, at)
    except SignatureFault as error:
        raise BadInput(f"signature: {error}", field="signature") from None


async def pushed_signature(blobs: BlobStore, record: WeightsRecord | None, digest: str) -> bytes | None:
    """The signature with which weights of this digest were pushed; None: they were pushed without.

    Raises:
        BadInput: it is lost, so that nobody takes what was signed for what was not. BlobsDown.
    """
    found = [one.signature for one in record.revisions if one.digest == digest] if record is not None else []
    if record is None or not found or not found[0]:
        return None
    try:
        data = await blobs.read(record.tenant, found[0])
    except BlobMissing:
        data = b""
    if hashlib.sha256(data).hexdigest() != found[0]:
        raise BadInput(
            f"weights: The signature of {record.name}@{digest[:12]} is not in the blob store as it was pushed: push "
            "them again with it.",
            field="weights",
        )
    return data


def signature_info(hint: str, trust: TrustRecord | None, at: float) -> SignatureInfo | None:
    """What people are told of the signature by the key with this hint, as keys stand at the unix second `at`."""
    if not hint:
        return None
    key = trust.hinted(hint) if trust is not None else None
    why = "is not on record any more" if key is None else key.terms.fault(at)
    return SignatureInfo(key=hint[:KEY_DIGITS], name="" if key is None else key.name, counts=not why, why=why)


def _signed(parts: Sequence[ArtifactPart]) -> list[SignedPart]:
    return [SignedPart(part.path, part.sha256, part.size) for part in parts]
