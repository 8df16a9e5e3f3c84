"""What a tenant has signed counts by a key on record whose terms hold, and by no other."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pilotlight_core.host.supply.tenant_signatures import CODE, plain_pem, signed_parts, verify_folder
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart, FileEntry, Manifest
from pilotlight_core.model.supply.key_terms import KeyTerms
from pilotlight_core.model.supply.signed_folders import SignatureFault
from tests.builders.specs import function_spec, manifest
from tests.builders.supply import AT, DAY_S, parts_of, signing_key, trusting

PARTS = parts_of({"app.py": b"code", "lib/x.py": b"more"})


def test_a_signature_by_a_key_on_record_names_that_key() -> None:
    """Which the platform shows."""
    signer = signing_key()
    found = verify_folder("code", signer.sign("code", PARTS, 2**20), PARTS, trusting(signing_key(), signer), AT)

    assert (found.name, found.pem) == ("key2", signer.pem)


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (KeyTerms(not_after=AT), "key1 .* has expired on"),
        (KeyTerms(not_before=AT + DAY_S), "key1 .* counts from"),
        (KeyTerms(revoked_at=AT + DAY_S, reason="stolen"), "key1 .* was revoked on .*: stolen"),
    ],
)
def test_a_key_that_does_not_count_now_is_said_by_its_name(terms: KeyTerms, said: str) -> None:
    """Expired, not yet, revoked."""
    signer = signing_key()
    with pytest.raises(SignatureFault, match=f"The signature of code: its key {said}"):
        verify_folder("code", signer.sign("code", PARTS, 2**20), PARTS, trusting(signer, terms=terms), AT)


def test_another_key_and_a_changed_byte_are_told_apart() -> None:
    """A key that nobody has on record, one that did not sign it, and a statement that was changed."""
    signer, other = signing_key(), signing_key()
    text = signer.sign("code", PARTS, 2**20)
    for trust in (None, trusting(other)):
        with pytest.raises(SignatureFault, match=r"is by the key [0-9a-f]{16}, which is not on record"):
            verify_folder("code", text, PARTS, trust, AT)

    forged = json.loads(other.sign("code", PARTS, 2**20))
    forged["verificationMaterial"] = json.loads(text)["verificationMaterial"]
    changed = json.loads(text)
    changed["dsseEnvelope"]["payload"] = json.loads(signer.sign("else", PARTS, 2**20))["dsseEnvelope"]["payload"]
    for each in (forged, changed):
        with pytest.raises(SignatureFault, match=r"it is not by key1 .*, as it says, or was changed since"):
            verify_folder("code", json.dumps(each).encode(), PARTS, trusting(signer), AT)
    with pytest.raises(SignatureFault, match=r"The signature of code: app\.py is not what was signed"):
        verify_folder("code", text, [PARTS[0]._replace(sha256="0" * 64), *PARTS[1:]], trusting(signer), AT)


def test_what_is_signed_of_a_version_is_its_code_or_one_artifact() -> None:
    """As the manifest has them."""
    tiny = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=(ArtifactPart("m", "1" * 64, 1),))
    made = manifest(function_spec("rank"), FileEntry("app.py", "5" * 64, 3))
    version = Manifest(**{name: getattr(made, name) for name in made.__struct_fields__} | {"artifacts": (tiny,)})

    assert [tuple(part) for part in signed_parts(version, CODE)] == [("app.py", "5" * 64, 3)]
    assert [tuple(part) for part in signed_parts(version, "tiny")] == [("m", "1" * 64, 1)]
    assert signed_parts(version, "nothing") == []


def test_only_keys_of_the_curve_that_the_standard_tool_takes_are_put_on_record() -> None:
    """However their file was written."""
    pem = signing_key().pem
    assert plain_pem(f"\n{pem.strip()}\n\n") == pem

    def public(key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey) -> str:
        return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    for wrong in ("", "x", public(Ed25519PrivateKey.generate()), public(ec.generate_private_key(ec.SECP384R1()))):
        with pytest.raises(ValueError, match="of the curve P-256"):
            plain_pem(wrong)
