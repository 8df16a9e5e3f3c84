"""Keys, signatures and packages of the supply chain, as tests make them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from pilotlight.packing.folder_signing import FolderSigner
from pilotlight_core.model.packages.package_locks import LockedPackage, PackageLock
from pilotlight_core.model.supply.inventories import BaseInventory, PackageFact
from pilotlight_core.model.supply.key_terms import ALWAYS, KeyTerms
from pilotlight_core.model.supply.signed_folders import SignedPart
from pilotlight_core.model.supply.trust_records import TrustedKey, TrustRecord

AT = 1_790_000_000.0
DAY_S = 86_400.0
BASE = BaseInventory(
    digest="b" * 64,
    python="cp311",
    platform="linux_x86_64",
    packages=(
        PackageFact(name="numpy", version="2.1.0", licence="BSD-3-Clause"),
        PackageFact(name="Strange_Pack", version="1.0", licence="see (the file"),
        PackageFact(name="unknown", version="0.1"),
    ),
)


def signing_key() -> FolderSigner:
    """A tenant's new key."""
    return FolderSigner(ec.generate_private_key(ec.SECP256R1()))


def key_file(path: Path, curve: ec.EllipticCurve | None = None) -> Path:
    """A private key in a file."""
    private = ec.generate_private_key(curve or ec.SECP256R1())
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def trusting(*signers: FolderSigner, tenant: str = "acme", terms: KeyTerms = ALWAYS) -> TrustRecord:
    """A record with the keys of these."""
    keys = (
        TrustedKey(name=f"key{number}", pem=each.pem, added_at=AT, terms=terms)
        for number, each in enumerate(signers, 1)
    )
    return TrustRecord(tenant=tenant, keys=tuple(keys))


def parts_of(files: Mapping[str, bytes], size: int = 2**20) -> list[SignedPart]:
    """The parts of files that are split at `size` bytes."""
    return [
        SignedPart(path, hashlib.sha256(content[start : start + size]).hexdigest(), len(content[start : start + size]))
        for path, content in files.items()
        for start in range(0, max(len(content), 1), size)
    ]


def laid_out(folder: Path, files: Mapping[str, bytes]) -> Path:
    """The files in a folder."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def lock_of(**versions: str) -> PackageLock:
    """A lock of packages, each with one file."""
    packages = tuple(
        LockedPackage(name=name.replace("_", "-"), version=version, hashes=("c" * 64,))
        for name, version in sorted(versions.items())
    )
    return PackageLock(
        requirements=tuple(f"{each.name}=={each.version}" for each in packages), packages=packages,
        base_digest=BASE.digest, python="cp311", platform="linux_x86_64",
    )  # fmt: skip
