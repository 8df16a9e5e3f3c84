"""Manifests that were changed, or signed with another key, are refused."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.host.signing import (
    OPERATOR_PUBLIC,
    PRIVATE,
    PUBLIC,
    BadSignature,
    NoKey,
    Signer,
    Verifier,
    keys_in,
)
from pilotlight_core.model.spec import FileEntry, SignedManifest
from tests.builders.specs import function_spec, manifest

MANIFEST = manifest(function_spec(), FileEntry("app.py", "0" * 64, 10))


def test_a_signed_manifest_verifies(tmp_path: Path) -> None:
    """Who has the folder, the public file or its bytes gets the manifest back."""
    signer = Signer.load_or_create(tmp_path)
    signed = signer.sign(MANIFEST)

    for source in (tmp_path, tmp_path / PUBLIC, (tmp_path / PUBLIC).read_bytes(), signer.public):
        assert Verifier.load(source).verify(signed) == MANIFEST


def test_the_key_is_kept_and_private(tmp_path: Path) -> None:
    """A second start loads the same key; other users cannot read the private one."""
    first = Signer.load_or_create(tmp_path / "keys")

    assert Signer.load_or_create(tmp_path / "keys").key_id == first.key_id
    assert stat.S_IMODE((tmp_path / "keys" / PRIVATE).stat().st_mode) == 0o600
    assert sorted(path.name for path in (tmp_path / "keys").iterdir()) == [PRIVATE, PUBLIC]


def test_a_lost_public_key_is_written_again(tmp_path: Path) -> None:
    """The public key follows from the private one."""
    signed = Signer.load_or_create(tmp_path).sign(MANIFEST)
    (tmp_path / PUBLIC).unlink()

    Signer.load_or_create(tmp_path)

    assert Verifier.load(tmp_path).verify(signed) == MANIFEST


def test_any_change_is_refused(tmp_path: Path) -> None:
    """A flipped bit of the manifest or of the signature is noticed."""
    signed = Signer.load_or_create(tmp_path).sign(MANIFEST)
    verifier = Verifier.load(tmp_path)
    changed = signed.manifest.replace(b"default", b"another")

    for forged in (
        msgspec.structs.replace(signed, manifest=changed),
        msgspec.structs.replace(signed, signature=bytes([signed.signature[0] ^ 1]) + signed.signature[1:]),
        msgspec.structs.replace(signed, signature=b""),
    ):
        with pytest.raises(BadSignature, match="does not match"):
            verifier.verify(forged)


def test_another_key_is_refused(tmp_path: Path) -> None:
    """A good signature by a key that is not trusted is worth nothing, also under a trusted key's name."""
    stranger = Signer.load_or_create(tmp_path / "stranger").sign(MANIFEST)
    verifier = Verifier(Signer.load_or_create(tmp_path / "ours").public)

    with pytest.raises(BadSignature, match="not trusted"):
        verifier.verify(stranger)
    with pytest.raises(BadSignature, match="does not match"):
        verifier.verify(msgspec.structs.replace(stranger, key_id=verifier.key_id))


def test_what_is_signed_is_read_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of another release, with fields that this one does not know; but they must be a manifest."""
    signer, verifier = Signer.load_or_create(tmp_path), Verifier.load(tmp_path)

    def signed(data: bytes) -> SignedManifest:
        monkeypatch.setattr("pilotlight_core.host.signing.encode_manifest", lambda _: data)
        return signer.sign(MANIFEST)

    known = msgspec.to_builtins(MANIFEST)
    newer = known | {"colour": "red", "spec": known["spec"] | {"flavour": {"kind": "sweet"}}}
    assert verifier.verify(signed(msgspec.json.encode(newer))) == MANIFEST
    with pytest.raises(BadSignature, match="cannot be read"):
        verifier.verify(signed(b"{}"))


def test_no_key_or_a_bad_one_is_said(tmp_path: Path) -> None:
    """A missing public key and a damaged private one are named."""
    with pytest.raises(NoKey, match="no public key"):
        Verifier.load(tmp_path)

    (tmp_path / PRIVATE).write_text("nonsense")
    with pytest.raises(NoKey, match="is not a private key"):
        Signer.load_or_create(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda pem: b"", "expected one public key as PEM"),
        (lambda pem: pem + pem, "expected one public key as PEM"),
        (lambda pem: pem.replace(b"MCow", b"M*ow"), "no public key"),
        (lambda pem: pem.replace(b"MCow", b"MCoz"), "not an ed25519 key"),
        (lambda pem: pem.replace(b"PUBLIC", b"PRIVATE"), "expected one public key as PEM"),
    ],
    ids=["nothing", "two", "no base64", "another kind", "private"],
)
def test_what_is_not_a_public_key_is_refused(change: Callable[[bytes], bytes], said: str, tmp_path: Path) -> None:
    """With what was expected."""
    Signer.load_or_create(tmp_path)
    with pytest.raises(NoKey, match=said):
        Verifier.load(change((tmp_path / PUBLIC).read_bytes()))


def test_a_private_key_that_others_may_have_read_signs_nothing(tmp_path: Path) -> None:
    """Nor is another one made in its place."""
    Signer.load_or_create(tmp_path)
    path = tmp_path / PRIVATE
    path.chmod(0o644)
    with pytest.raises(NoKey, match=f"is not used: {path} has mode 0644.*chmod 600"):
        Signer.load_or_create(tmp_path)


def test_the_folder_of_the_private_key_is_closed(tmp_path: Path) -> None:
    """Also one that was open before."""
    folder = tmp_path / "keys"
    folder.mkdir(mode=0o755)

    Signer.load_or_create(folder)

    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "manifest_ed25519").stat().st_mode & 0o777 == 0o600


def test_a_file_may_have_several_public_keys(tmp_path: Path) -> None:
    """One behind the other, as `cat` makes it; what is no such list is no key."""
    signers = [Signer.load_or_create(tmp_path / name) for name in ("first", "second")]
    both = tmp_path / "both.pem"
    both.write_bytes(b"".join((tmp_path / name / PUBLIC).read_bytes() for name in ("first", "second")))

    assert [each.public for each in Verifier.load_all(both)] == [each.public for each in signers]
    assert [each.key_id for each in Verifier.load_all(tmp_path / "first")] == [signers[0].key_id]
    for wrong in (b"", b"nonsense", both.read_bytes() + b"and more"):
        both.write_bytes(wrong)
        with pytest.raises(NoKey, match="no list of public keys"):
            Verifier.load_all(both)
    with pytest.raises(NoKey, match="There is no public key"):
        Verifier.load_all(tmp_path / "nowhere")


def test_a_folder_may_have_further_keys_and_the_operators_public_one(tmp_path: Path) -> None:
    """Those without their private half are no keys to sign with; who verifies takes the operator's too."""
    first = Signer.load_or_create(tmp_path)
    further = Signer.load_or_create(tmp_path, name=f"{PRIVATE}.next")
    operator = Signer.load_or_create(tmp_path / "operator", name="operator_ed25519")
    (tmp_path / OPERATOR_PUBLIC).write_bytes((tmp_path / "operator" / OPERATOR_PUBLIC).read_bytes())
    (tmp_path / f"{PRIVATE}.lost.pub").write_bytes((tmp_path / PUBLIC).read_bytes())
    (tmp_path / f"{PRIVATE}.broken.pub").write_bytes(b"nonsense")

    assert keys_in(tmp_path) == {first.key_id: PRIVATE, further.key_id: f"{PRIVATE}.next"}
    assert [each.key_id for each in Verifier.load_all(tmp_path)] == [first.key_id, operator.key_id]
