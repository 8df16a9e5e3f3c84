"""What is signed is checked again, whoever signed it."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_core.model.spec import FileEntry, Manifest, SignedManifest
from pilotlight_core.model.versions.manifest_codec import encode_manifest
from pilotlight_runtime.containers.files.bundle import CannotVerify, check_files, check_manifest, read_signed
from tests.builders import specs as builders
from tests.builders.nodes import bind
from tests.builders.specs import function_spec, id_of

DIGEST = "0" * 64


def manifest(*paths: str, size: int = 1) -> Manifest:
    return builders.manifest(function_spec(), *(FileEntry(path, DIGEST, size) for path in paths))


def signed(manifest: Manifest) -> SignedManifest:
    """As read from its blob; its signature is checked elsewhere."""
    return SignedManifest(manifest=encode_manifest(manifest), key_id="", signature=b"")


def bind_of(manifest: Manifest) -> Bind:
    return bind(version=id_of(manifest), tenant=manifest.tenant, manifest_sha256=DIGEST)


@pytest.mark.parametrize(
    "path",
    ["", ".", "..", "../x", "/etc/passwd", "a/../b", "a//b", "a/", "./a", "a/.", "a\0b", "a/../../b"],
)
def test_a_path_stays_inside(path: str) -> None:
    """Nothing is written outside of the container's own folder."""
    with pytest.raises(CannotVerify, match="not one inside it"):
        check_files((FileEntry(path, DIGEST, 1),))


@pytest.mark.parametrize("paths", [("a", "a"), ("a", "a/b"), ("a/b/c", "a/b")])
def test_a_path_is_one_thing(paths: tuple[str, ...]) -> None:
    """Not two files, and not a file and a folder."""
    with pytest.raises(CannotVerify):
        check_files(tuple(FileEntry(path, DIGEST, 1) for path in paths))


@pytest.mark.parametrize("digest", ["", "0" * 63, "G" * 64, "../" + "0" * 61])
def test_a_digest_is_a_digest(digest: str) -> None:
    """It becomes a file name."""
    with pytest.raises(CannotVerify, match="no digest"):
        check_files((FileEntry("a", digest, 1),))


def test_a_digest_has_one_size() -> None:
    """Or one of the entries lies."""
    with pytest.raises(CannotVerify, match="two sizes of the content of 'b'"):
        check_files((FileEntry("a", "0" * 64, 1), FileEntry("b", "0" * 64, 2)))


def test_ordinary_bundles_pass() -> None:
    """Packages, data, odd but legal names."""
    good = manifest("app.py", "pkg/__init__.py", "pkg/a b.txt", ".hidden", "pkg/…/x")
    check_manifest(good, signed(good), bind_of(good))


def test_a_manifest_is_the_commanded_one() -> None:
    """Version and tenant are compared with the command, sizes with the platform's bounds."""
    good = manifest("app.py")
    with pytest.raises(CannotVerify, match="not of ver_other"):
        check_manifest(good, signed(good), msgspec.structs.replace(bind_of(good), version="ver_other"))
    with pytest.raises(CannotVerify, match="belongs to acme"):
        check_manifest(good, signed(good), msgspec.structs.replace(bind_of(good), tenant="rival"))
    large = manifest("app.py", size=10**9)
    with pytest.raises(CannotVerify, match="more than"):
        check_manifest(large, signed(large), bind_of(large))


def test_a_feature_that_this_agent_lacks_is_named() -> None:
    """It is of a later release, and says so in the manifest; what it need not know it ignores."""
    newer = msgspec.structs.replace(manifest("app.py"), needs=("engines", "tails"))
    with pytest.raises(CannotVerify, match="needs engines, tails, which this node's agent lacks: upgrade"):
        check_manifest(newer, signed(newer), bind_of(newer))


def test_a_blob_that_is_no_manifest() -> None:
    """It cannot be read, and says so."""
    with pytest.raises(CannotVerify, match="cannot be read"):
        read_signed(b"\xc1")
