"""Signatures over folders are those of model-signing: its own tool takes ours, and we take its own."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import model_signing
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from pilotlight.packing.folder_signing import FolderSigner
from pilotlight_core.model.supply.signed_folders import SignatureFault, SignedPart, check_signed, read_signature
from pilotlight_core.model.supply.trust_records import hint_of
from tests.builders.supply import key_file, laid_out, parts_of, signing_key

FILES = {"model/a.bin": b"0123456789abcdefXY", "model/sub/b": b"zz", "model/sub-x": b"q"}
WHOLE, SHARDS = 2**20, 8
Folder = tuple[Path, list[SignedPart], int]


def parts(size: int) -> list[SignedPart]:
    return parts_of({path.removeprefix("model/"): content for path, content in sorted(FILES.items())}, size)


@pytest.fixture(params=[WHOLE, SHARDS])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    """A folder, and the parts in which it is stored."""
    return laid_out(tmp_path, FILES) / "model", parts(request.param), request.param


def test_the_standard_tool_verifies_our_signature_and_refuses_what_was_changed(folder: Folder, tmp_path: Path) -> None:
    """By files, and by shards of the parts' size."""
    path, listed, size = folder
    signer = signing_key()
    (tmp_path / "sig").write_bytes(signer.sign("model", listed, size))
    (tmp_path / "pub").write_text(signer.pem)
    judge = model_signing.verifying.Config().use_elliptic_key_verifier(public_key=tmp_path / "pub")

    judge.verify(path, tmp_path / "sig")

    (path / "sub" / "b").write_bytes(b"zy")
    with pytest.raises(ValueError, match="mismatch"):
        judge.verify(path, tmp_path / "sig")


def test_the_standard_command_line_verifies_what_is_signed_whole(tmp_path: Path) -> None:
    """It takes files whole; of shards its library says the same, as above."""
    path, signer = laid_out(tmp_path, FILES) / "model", signing_key()
    (tmp_path / "sig").write_bytes(signer.sign("model", parts(WHOLE), WHOLE))
    (tmp_path / "pub").write_text(signer.pem)
    words = ["verify", "key", str(path), "--signature", str(tmp_path / "sig"), "--public_key", str(tmp_path / "pub")]
    (script,) = entry_points(group="console_scripts", name="model_signing")
    command = script.load()

    assert CliRunner().invoke(command, words).exit_code == 0
    (path / "sub" / "b").write_bytes(b"zy")
    assert CliRunner().invoke(command, words).exit_code != 0


def test_a_signature_of_the_standard_tool_is_ours_too(folder: Folder, tmp_path: Path) -> None:
    """Its key, its bytes, and its list of files."""
    path, listed, size = folder
    key = key_file(tmp_path / "key")
    config = model_signing.signing.Config().use_elliptic_key_signer(private_key=key)
    if size == SHARDS:
        config.set_hashing_config(model_signing.hashing.Config().use_shard_serialization(shard_size=SHARDS))
    config.sign(path, tmp_path / "sig")

    read = read_signature((tmp_path / "sig").read_bytes())
    pem = FolderSigner.load(key).pem
    public = load_pem_public_key(pem.encode())
    assert isinstance(public, ec.EllipticCurvePublicKey)
    public.verify(read.signature, read.signed, ec.ECDSA(SHA256()))
    assert read.hint == hint_of(pem)
    check_signed(read.content, listed)


def test_a_folder_that_is_not_as_it_was_signed_is_refused_by_the_name_of_the_file(folder: Folder) -> None:
    """Added, missing, changed; and what git keeps, which model-signing passes over."""
    _, listed, size = folder
    content = read_signature(signing_key().sign("model", listed, size)).content
    check_signed(content, listed)

    for changed, said in (
        ([*listed, SignedPart("new.py", "0" * 64, 1)], r"new\.py.* is not signed: it was added since"),
        (listed[:-1], r"sub/b.* is signed, and is not there"),
        ([*listed[:-1], listed[-1]._replace(sha256="0" * 64)], r"sub/b.* is not what was signed"),
        ([*listed, SignedPart(".gitignore", "0" * 64, 1)], r"\.gitignore is outside of what model-signing signs"),
        ([*listed, SignedPart("sub/.git/config", "0" * 64, 1)], r"sub/\.git/config is outside"),
    ):
        with pytest.raises(SignatureFault, match=said):
            check_signed(content, changed)


def test_a_sentence_has_no_more_of_a_name_than_people_read() -> None:
    """A signature lists what its maker likes."""
    content = read_signature(signing_key().sign("model", [SignedPart("x" * 10_000, "0" * 64, 1)], WHOLE)).content
    with pytest.raises(SignatureFault) as refused:
        check_signed(content, [])
    assert len(str(refused.value)) < 300


def test_files_in_parts_need_a_signature_by_shards_of_that_size() -> None:
    """One by whole files says nothing of parts; one by other shards neither."""
    whole = read_signature(signing_key().sign("model", parts(WHOLE), WHOLE)).content
    with pytest.raises(SignatureFault, match=r"a\.bin is stored in parts: sign it by shards"):
        check_signed(whole, parts(SHARDS))
    shards = read_signature(signing_key().sign("model", parts(SHARDS), SHARDS)).content
    with pytest.raises(SignatureFault, match=r"a\.bin is stored in other parts"):
        check_signed(shards, parts(12))
    with pytest.raises(SignatureFault, match="empty is empty, and a signature by shards leaves it out"):
        check_signed(shards, [*parts(SHARDS), SignedPart("empty", "0" * 64, 0)])


def test_a_signature_with_symlinks_or_other_digests_says_nothing_here(tmp_path: Path) -> None:
    """The list does not say what was one."""
    key = key_file(tmp_path / "key")
    laid_out(tmp_path, FILES)
    for number, hashing in enumerate(
        (
            model_signing.hashing.Config().set_allow_symlinks(True),
            model_signing.hashing.Config().use_file_serialization(hashing_algorithm="blake2"),
        )
    ):
        config = model_signing.signing.Config().use_elliptic_key_signer(private_key=key).set_hashing_config(hashing)
        config.sign(tmp_path / "model", tmp_path / f"{number}.sig")
        with pytest.raises(SignatureFault, match=r"symlinks allowed|digests by sha256"):
            check_signed(read_signature((tmp_path / f"{number}.sig").read_bytes()).content, parts(WHOLE))


@pytest.mark.parametrize("text", [b"", b"{}", b"null", b'{"mediaType": "x"}', b"\xff", b"[" * 50_000])
def test_what_is_no_signature_is_refused(text: bytes) -> None:
    """Whatever a tenant sends."""
    with pytest.raises(SignatureFault, match="no signature of model-signing"):
        read_signature(text)
