"""What is written of artifacts."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.artifacts.artifact_entries import ArtifactEntry, ArtifactInfo, ArtifactKind


def test_what_came_with_its_app_says_nothing_of_a_digest() -> None:
    """So that platforms of before take it."""
    entry = ArtifactEntry(kind=ArtifactKind.SBOM, name="parts", parts=())
    info = ArtifactInfo(kind=ArtifactKind.WEIGHTS, name="m", files=1, size=2, digest="d")
    assert "digest" not in msgspec.json.encode(entry).decode()
    assert msgspec.json.decode(msgspec.json.encode(info), type=ArtifactInfo) == info
