"""Signatures over manifests: the platform signs accepted manifests, and agents run only signed ones.

The private key is in `<folder>/manifest_ed25519` (PEM, mode 0600), the public one beside it as `.pub` (PEM). Agents
need the public key only. Who signs or verifies loads `cryptography`, 7 MB, with the first manifest, not before.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec

from pilotlight_core.host.file_permissions import OWNER_ONLY, private_folder, why_open
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.spec import Manifest, SignedManifest
from pilotlight_core.model.versions.manifest_codec import encode_manifest
from pilotlight_core.model.versions.public_keys import public_key_of, public_keys_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PRIVATE = "manifest_ed25519"
PUBLIC = "manifest_ed25519.pub"
OPERATOR_PUBLIC = "operator_ed25519.pub"
"""Beside it, where the operator's key vouches for a set of keys and agents are given this folder."""


class BadSignature(PilotlightError):
    """The manifest was not signed by this platform."""

    code: ClassVar[str] = "misconfigured"


class NoKey(PilotlightError):
    """The key is missing or cannot be read."""

    code: ClassVar[str] = "internal"


class Signer:
    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw()
        self.key_id = key_id(self.public)

    @classmethod
    def load_or_create(cls, folder: Path, *, create: bool = True, name: str = PRIVATE) -> Signer:
        """The key in `folder`, which is created if missing. Of two processes that create one, both get the first.

        Args:
            name: of its file; the public key is beside it.

        Raises:
            NoKey: if the file is not such a key, others may read it, or it is missing and must not be created.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        path = private_folder(folder, OWNER_ONLY) / name
        if not path.is_file():
            if not create:
                raise NoKey(f"There is no key to sign manifests with at {path}.")
            _create(path, Ed25519PrivateKey.generate())
        try:
            private = load_pem_private_key(path.read_bytes(), password=None)
        except ValueError as error:
            raise NoKey(f"{path} is not a private key: {error}.") from error
        if not isinstance(private, Ed25519PrivateKey):
            raise NoKey(f"{path} is not an ed25519 key.")
        if why := why_open(path):
            raise NoKey(f"The key to sign manifests with is not used: {why}")
        signer = cls(private)
        signer._publish(folder / f"{name}.pub")
        return signer

    def sign(self, manifest: Manifest) -> SignedManifest:
        data = encode_manifest(manifest)
        return SignedManifest(manifest=data, key_id=self.key_id, signature=self.sign_data(data))

    def sign_data(self, data: bytes) -> bytes:
        return self._private.sign(data)

    def _publish(self, path: Path) -> None:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        pem = self._private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        if not path.is_file() or path.read_bytes() != pem:
            _replace(path, pem, 0o644)


def keys_in(folder: Path) -> dict[str, str]:
    """By id, the names of the files of private keys in a folder: `manifest_ed25519`, and `manifest_ed25519.NAME`.

    Ids are read from the public keys beside them.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.glob(f"{PRIVATE}*.pub"), key=lambda path: (len(path.name), path.name)):
        name = path.name.removesuffix(".pub")
        try:
            public = public_key_of(path.read_bytes())
        except (OSError, ValueError):
            continue
        if (folder / name).is_file():
            found.setdefault(key_id(public), name)
    return found


class Verifier:
    def __init__(self, public: bytes) -> None:
        self.public = public
        self.key_id = key_id(public)

    @classmethod
    def load(cls, source: Path | bytes) -> Verifier:
        """The public key in a folder, in a PEM file, or as PEM or 32 raw bytes.

        Raises:
            NoKey.
        """
        if isinstance(source, bytes) and len(source) == 32:
            return cls(source)
        try:
            return cls(public_key_of(source if isinstance(source, bytes) else _read(source)))
        except (OSError, ValueError) as error:
            raise NoKey(f"There is no public key to verify manifests with: {error}.") from error

    @classmethod
    def load_all(cls, source: Path) -> tuple[Verifier, ...]:
        """The public keys in a folder, or those in a PEM file, one behind the other; there is at least one.

        Raises:
            NoKey.
        """
        try:
            beside = source / OPERATOR_PUBLIC
            operators = beside.read_bytes() if beside.is_file() else b""
            return tuple(map(cls, public_keys_of(_read(source) + operators)))
        except OSError as error:
            raise NoKey(f"There is no public key to verify manifests with: {error}.") from error
        except ValueError as error:
            raise NoKey(f"There is no public key to verify manifests with: {source}: {error}.") from error

    def verify(self, signed: SignedManifest) -> Manifest:
        """The manifest, if it is signed by the key. Fields that this release does not know are ignored.

        Raises:
            BadSignature: saying what is wrong.
        """
        if signed.key_id != self.key_id:
            raise BadSignature(f"The manifest is signed by key {signed.key_id}, which is not trusted here.")
        if not self.has_signed(signed.manifest, signed.signature):
            raise BadSignature("The manifest's signature does not match: it was changed after it was signed.")
        try:
            return msgspec.json.decode(signed.manifest, type=Manifest)
        except msgspec.DecodeError as error:
            raise BadSignature(f"The manifest is signed but cannot be read: {error}.") from error

    def has_signed(self, data: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, data)
        except InvalidSignature:
            return False
        return True


def key_id(public: bytes) -> str:
    """16 hexadecimal digits that name a public key."""
    return hashlib.sha256(public).hexdigest()[:16]


def _create(path: Path, private: Ed25519PrivateKey) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    _write(temporary, pem, 0o600)
    try:
        path.hardlink_to(temporary)  # the first one wins
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _replace(path: Path, data: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    _write(temporary, data, mode)
    temporary.rename(path)


def _write(path: Path, data: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _read(source: Path) -> bytes:
    return (source / PUBLIC if source.is_dir() else source).read_bytes()
