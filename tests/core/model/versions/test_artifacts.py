"""Files of artifacts, and what is shown of them."""

from __future__ import annotations

from pilotlight_core.model.spec import ArtifactEntry, ArtifactInfo, ArtifactKind, ArtifactPart
from pilotlight_core.model.versions.artifacts import artifact_info, files_of, parts_of

ONE, TWO, OTHER = (
    ArtifactPart(path, digest * 64, size) for path, digest, size in (("a", "1", 5), ("a", "2", 3), ("b", "1", 5))
)


def test_the_parts_of_a_file_stand_together() -> None:
    """In their order; equal contents of two files are two files."""
    weights = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=(ONE, TWO, OTHER))

    assert list(files_of(weights)) == [(ONE, TWO), (OTHER,)]
    assert list(parts_of([weights, weights])) == [ONE, TWO, OTHER, ONE, TWO, OTHER]
    assert artifact_info(weights) == ArtifactInfo(kind=ArtifactKind.WEIGHTS, name="tiny", files=2, size=13)
