"""Verifies what a tenant has signed of a version, against the keys that it has on record."""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_core.model.spec import Manifest
from pilotlight_core.model.supply.signed_folders import SignatureFault, SignedPart, check_signed, read_signature
from pilotlight_core.model.supply.trust_records import TrustedKey, TrustRecord

CODE = "code"
"""The name of what a bundle is, among the names of artifacts."""
KEY_TEXT = "expected the PEM of a public key of the curve P-256 ('pilotlight trust new' makes one)"


def verify_folder(
    of: str, text: bytes, parts: Iterable[SignedPart], trust: TrustRecord | None, at: float
) -> TrustedKey:
    """The key that has signed a folder, whose terms hold at the unix second `at`.

    Raises:
        SignatureFault: saying of which folder, and what is wrong.
    """
    try:
        read = read_signature(text)
        key = trust.hinted(read.hint) if trust is not None else None
        if key is None:
            raise SignatureFault(
                f"it is by the key {read.hint[:16] or 'of nobody'}, which is not on record: 'pilotlight trust add'."
            )
        if why := key.terms.fault(at):
            raise SignatureFault(f"its key {key.name} ({key.id}) {why}.")
        if not has_signed(key.pem, read.signed, read.signature):
            raise SignatureFault(f"it is not by {key.name} ({key.id}), as it says, or was changed since.")
        check_signed(read.content, parts)
    except SignatureFault as error:
        raise SignatureFault(f"The signature of {of}: {error}") from None
    return key


def signed_parts(manifest: Manifest, of: str) -> list[SignedPart]:
    """The files of a version's code, or of one of its artifacts."""
    if of == CODE:
        return [SignedPart(entry.path, entry.sha256, entry.size) for entry in manifest.files]
    return [
        SignedPart(part.path, part.sha256, part.size)
        for artifact in manifest.artifacts
        if artifact.name == of
        for part in artifact.parts
    ]


def has_signed(pem: str, data: bytes, signature: bytes) -> bool:
    """Whether a key on record has signed these bytes."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key = load_pem_public_key(pem.encode())
    if not isinstance(key, EllipticCurvePublicKey):
        return False
    try:
        key.verify(signature, data, ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def plain_pem(text: str) -> str:
    """A public key as it is on record and as signatures name it, however it was written.

    Raises:
        ValueError: it is none of the curve P-256.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

    try:
        key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError(KEY_TEXT) from None
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise ValueError(KEY_TEXT)
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
