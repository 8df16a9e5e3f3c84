"""Artifacts that are signed are checked again, and known to the cache by what they hold."""

from __future__ import annotations

import pytest

from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart
from pilotlight_core.model.versions.artifacts import MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, PART_BYTES
from pilotlight_runtime.containers.files.artifact_files import artifact_files, check_artifacts
from pilotlight_runtime.containers.files.bundle import CannotVerify

A, B = "a" * 64, "b" * 64


def artifact(*parts: ArtifactPart, name: str = "tiny") -> ArtifactEntry:
    return ArtifactEntry(kind=ArtifactKind.WEIGHTS, name=name, parts=parts or (ArtifactPart("model", A, 1),))


def test_files_lie_in_the_folder_of_their_artifact() -> None:
    """One of a single part is known by its digest, as any file; others by the order of their parts."""
    one, two = ArtifactPart("x/model", A, 1), ArtifactPart("x/model", B, 2)
    files = artifact_files([artifact(one, two, ArtifactPart("config", B, 2)), artifact(two, one, name="other")])

    assert [file.entry.path for file in files] == ["tiny/x/model", "tiny/config", "other/x/model"]
    assert [file.entry.size for file in files] == [3, 2, 3]
    joined, single, reversed_ = (file.entry.sha256 for file in files)
    assert single == B
    assert joined.startswith("joined-")
    assert joined != reversed_
    assert "." not in joined  # the cache takes a name with a suffix for what a fetch has left


@pytest.mark.parametrize(
    "wrong",
    [
        (artifact(name="../tiny"),),
        (artifact(name=""),),
        (artifact(), artifact()),
        (artifact(ArtifactPart("../model", A, 1)),),
        (artifact(ArtifactPart("/model", A, 1)),),
        (artifact(ArtifactPart("a", A, 1), ArtifactPart("b", B, 1), ArtifactPart("a", A, 1)),),
        (artifact(ArtifactPart("a", A, 1), ArtifactPart("a/b", B, 1)),),
        (artifact(ArtifactPart("a", "../" + A[3:], 1)),),
        (artifact(ArtifactPart("a", A, -1)),),
        (artifact(ArtifactPart("a", A, PART_BYTES + 1)),),
        (artifact(ArtifactPart("a", A, 1), ArtifactPart("b", A, 2)),),
        tuple(artifact(name=f"a{number}") for number in range(MAX_ARTIFACTS + 1)),
        (artifact(*[ArtifactPart("a", A, PART_BYTES)] * (MAX_ARTIFACT_BYTES // PART_BYTES + 1)),),
    ],
)
def test_what_cannot_be_laid_out_is_refused(wrong: tuple[ArtifactEntry, ...]) -> None:
    """Names and paths that lead elsewhere or are taken, and parts without a digest and a size."""
    with pytest.raises(CannotVerify):
        check_artifacts(wrong)


def test_ordinary_artifacts_pass() -> None:
    """Several, with folders and with empty files; and none."""
    check_artifacts(())
    check_artifacts((artifact(), artifact(ArtifactPart("a/b", B, 0), ArtifactPart("a/c", B, 0), name="other")))
