"""What earlier releases have signed verifies, and keeps its name."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pilotlight_core.host.signing import Verifier
from pilotlight_core.model.spec import SignedManifest
from pilotlight_core.model.versions.manifest_codec import encode_manifest, lacking_features, version_id
from pilotlight_core.model.versions.spec_checks import check_spec
from tests.releases.stored_release import StoredRelease, each_release


def signed_in(state: Path) -> list[SignedManifest]:
    """The signed manifests among a state's blobs."""
    found = []
    for path in (state / "blobs").rglob("*"):
        if path.is_file():
            try:
                found.append(msgspec.msgpack.decode(path.read_bytes(), type=SignedManifest))
            except msgspec.DecodeError:
                continue
    return found


@each_release
def test_what_it_signed_is_trusted_and_has_its_name(release: StoredRelease, tmp_path: Path) -> None:
    """Nobody needs to be able to write those bytes again; this release would, so that nothing is renumbered."""
    state = release.unpack("state", tmp_path)
    (key,) = state.rglob("*.pub")
    verifier = Verifier.load(key.parent)
    deployed = {id_ for record in release.told.history for id_ in record["functions"].values()}

    names = set()
    for signed in signed_in(state):
        manifest = verifier.verify(signed)
        assert encode_manifest(manifest) == signed.manifest
        assert lacking_features(manifest) == []
        check_spec(manifest.spec)
        names.add(version_id(signed.manifest))

    assert deployed <= names
    assert len(deployed) == 11
