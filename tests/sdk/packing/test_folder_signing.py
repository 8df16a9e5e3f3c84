"""A tenant signs on its own machine what it deploys, by a key that stays there."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from pilotlight.definitions.errors import Misuse
from pilotlight.packing.bundle import Bundle
from pilotlight.packing.folder_signing import FolderSigner, SigningWish, signatures_for
from pilotlight.packing.packed_artifacts import PackedArtifacts
from pilotlight_core.host.supply.tenant_signatures import verify_folder
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart, FileEntry
from pilotlight_core.model.supply.signed_folders import SignedPart
from tests.builders.supply import AT, key_file, trusting

CODE = FileEntry("app.py", "1" * 64, 3)
PARTS = (ArtifactPart("m", "2" * 64, 5), ArtifactPart("n", "3" * 64, 5))
BUNDLE = Bundle(files=(CODE,), paths={})
PACKED = PackedArtifacts(entries=(ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=PARTS),))


def test_a_key_is_made_once_for_its_user_alone(tmp_path: Path) -> None:
    """The public half goes beside it, and is read by the standard library."""
    made = FolderSigner.create(tmp_path / "release.key")

    assert stat.S_IMODE((tmp_path / "release.key").stat().st_mode) == 0o600
    assert (tmp_path / "release.key.pub").read_text() == made.pem == FolderSigner.load(tmp_path / "release.key").pem
    with pytest.raises(Misuse, match="is there: a key is not overwritten"):
        FolderSigner.create(tmp_path / "release.key")
    with pytest.raises(Misuse, match="cannot be written"):
        FolderSigner.create(tmp_path / "none" / "release.key")


def test_code_and_artifacts_are_signed_together_and_given_signatures_go_along(tmp_path: Path) -> None:
    """Each by its name; what is given goes before what would be made."""
    signer = FolderSigner.create(tmp_path / "key")
    (tmp_path / "llama.sig").write_bytes(b"theirs")
    found = signatures_for(BUNDLE, PACKED, SigningWish(signer=signer, given={"llama": tmp_path / "llama.sig"}))

    texts = {each.of: each.bundle.encode() for each in found}
    assert set(texts) == {"code", "tiny", "llama"}
    signed = {
        "code": [SignedPart("app.py", "1" * 64, 3)],
        "tiny": [SignedPart("m", "2" * 64, 5), SignedPart("n", "3" * 64, 5)],
    }
    for of, parts in signed.items():
        assert verify_folder(of, texts[of], parts, trusting(signer), AT).pem == signer.pem
    assert texts["llama"] == b"theirs"
    assert signatures_for(BUNDLE, PACKED, None) == ()


def test_what_cannot_be_signed_is_named(tmp_path: Path) -> None:
    """Files of git's, and a signature that is not there."""
    signer = FolderSigner.create(tmp_path / "key")
    hidden = Bundle(files=(CODE, FileEntry(".gitignore", "4" * 64, 1)), paths={})
    with pytest.raises(Misuse, match=r"code cannot be signed: \.gitignore is outside"):
        signatures_for(hidden, PACKED, SigningWish(signer=signer))
    with pytest.raises(Misuse, match="nowhere cannot be read"):
        signatures_for(BUNDLE, PACKED, SigningWish(given={"x": tmp_path / "nowhere"}))


def test_other_keys_and_sealed_ones_are_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sealed one is opened by the environment's password."""
    (tmp_path / "ed").write_bytes(
        Ed25519PrivateKey.generate().private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
        )
    )
    for path, said in (
        (tmp_path / "nowhere", "cannot be read"),
        (key_file(tmp_path / "p384", ec.SECP384R1()), "no key of the curve P-256: 'pilotlight trust new'"),
        (tmp_path / "ed", "PILOTLIGHT_SIGNING_PASSWORD"),
    ):
        with pytest.raises(Misuse, match=said):
            FolderSigner.load(path)
    private = load_pem_private_key(key_file(tmp_path / "plain").read_bytes(), None)
    sealed = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (tmp_path / "sealed").write_bytes(sealed)
    monkeypatch.setenv("PILOTLIGHT_SIGNING_PASSWORD", "secret")
    assert FolderSigner.load(tmp_path / "sealed").pem.startswith("-----BEGIN PUBLIC KEY-----")
