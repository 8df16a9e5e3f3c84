"""Signs what is deployed, with a key of the tenant's own that never leaves its machine.

The signatures are those of model-signing (OpenSSF), by a key of the curve P-256: its own tool verifies them against the
same folder. They need the extra `signing`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pilotlight.definitions.errors import Misuse
from pilotlight.packing.bundle import Bundle
from pilotlight.packing.packed_artifacts import PackedArtifacts
from pilotlight_core.model.api.call_api import SIGNATURE_LENGTH, DeploySignature
from pilotlight_core.model.spec import ArtifactPart
from pilotlight_core.model.supply.signed_folders import SignatureFault, SignedPart, bundle_of, statement_of, to_sign
from pilotlight_core.model.supply.trust_records import hint_of
from pilotlight_core.model.versions.artifacts import PART_BYTES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

CODE = "code"
NEEDS_EXTRA = "To sign, install pilotlight[signing] (it brings cryptography)."


class FolderSigner:
    """A private key of the curve P-256, of a PEM file."""

    def __init__(self, private: EllipticCurvePrivateKey) -> None:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        self._private = private
        self.pem = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    @classmethod
    def load(cls, path: Path) -> FolderSigner:
        """Raises Misuse: there is none, or the extra is missing."""
        serialization, ec = _library()
        password = os.environ.get("PILOTLIGHT_SIGNING_PASSWORD", "").encode() or None
        try:
            private = serialization.load_pem_private_key(path.expanduser().read_bytes(), password)
        except OSError as error:
            raise Misuse(f"{path} cannot be read: {error.strerror}.", field="--sign") from None
        except (ValueError, TypeError) as error:
            raise Misuse(
                f"{path} is no private key that can be read: {error}. Sealed: PILOTLIGHT_SIGNING_PASSWORD.",
                field="--sign",
            ) from None
        if not isinstance(private, ec.EllipticCurvePrivateKey) or not isinstance(private.curve, ec.SECP256R1):
            raise Misuse(f"{path} is no key of the curve P-256: 'pilotlight trust new' makes one.", field="--sign")
        return cls(private)

    @classmethod
    def create(cls, path: Path) -> FolderSigner:
        """Make a key in a new file, for this user alone, and the public one beside it (`.pub`).

        Raises:
            Misuse: the file is there, or cannot be written.
        """
        serialization, ec = _library()
        signer = cls(ec.generate_private_key(ec.SECP256R1()))
        data = signer._private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
            path.with_name(f"{path.name}.pub").write_text(signer.pem)
        except FileExistsError:
            raise Misuse(f"{path} is there: a key is not overwritten, name another file.", field="file") from None
        except OSError as error:
            raise Misuse(f"{path} cannot be written: {error.strerror}.", field="file") from None
        return signer

    def sign(self, name: str, parts: Iterable[SignedPart], shard_size: int) -> bytes:
        """A signature's file, over a folder that is called `name`.

        Raises:
            Misuse: names a file that cannot be signed.
        """
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.hashes import SHA256

        try:
            content = statement_of(name, parts, shard_size)
        except SignatureFault as error:
            raise Misuse(f"{name} cannot be signed: {error}", field="--sign") from None
        return bundle_of(content, hint_of(self.pem), self._private.sign(to_sign(content), ECDSA(SHA256())))


@dataclass(frozen=True, kw_only=True)
class SigningWish:
    """What is to be signed at a deploy, and what was signed before: by name, the file of its signature."""

    signer: FolderSigner | None = None
    given: Mapping[str, Path] = field(default_factory=dict)


def signatures_for(bundle: Bundle, artifacts: PackedArtifacts, wish: SigningWish | None) -> tuple[DeploySignature, ...]:
    """What goes with a deploy: the code and its artifacts, signed now, and signatures that are given by their files.

    Raises:
        Misuse: names a file that cannot be signed, or a signature that cannot be read.
    """
    found: dict[str, bytes] = {}
    signer = wish.signer if wish is not None else None
    if signer is not None:
        code = [SignedPart(entry.path, entry.sha256, entry.size) for entry in bundle.files]
        found[CODE] = signer.sign(CODE, code, PART_BYTES)
        for entry in artifacts.entries:
            if entry.name == CODE:
                raise Misuse(f"The artifact {CODE} cannot be signed: name it otherwise.", field="--sign")
            found[entry.name] = signer.sign(entry.name, signed_parts_of(entry.parts), PART_BYTES)
    texts = {name: data.decode() for name, data in found.items()}
    texts |= {name: read_signature_file(path) for name, path in (wish.given if wish is not None else {}).items()}
    return tuple(DeploySignature(of=name, bundle=text) for name, text in texts.items())


def read_signature_file(path: Path) -> str:
    """A signature that was made before. Raises Misuse: the file cannot be read, or is none."""
    try:
        with path.expanduser().open("rb") as file:
            data = file.read(SIGNATURE_LENGTH + 1)
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror}.", field="--signature") from None
    if len(data) > SIGNATURE_LENGTH:
        raise Misuse(f"{path} is no signature: it has more than {SIGNATURE_LENGTH >> 20} MiB.", field="--signature")
    return data.decode("utf-8", "replace")


def signed_parts_of(parts: Iterable[ArtifactPart]) -> list[SignedPart]:
    """The files of an artifact, as they are signed."""
    return [SignedPart(part.path, part.sha256, part.size) for part in parts]


def _library() -> tuple[Any, Any]:
    """The modules of it. Raises Misuse: the extra is missing."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise Misuse(NEEDS_EXTRA, field="--sign") from None
    return serialization, ec
