"""The files of a version's artifacts on a node: checked, and as the cache knows them. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import ArtifactEntry, ArtifactPart, FileEntry
from pilotlight_core.model.versions.artifacts import (
    MAX_ARTIFACT_BYTES,
    MAX_ARTIFACTS,
    MAX_PARTS,
    PART_BYTES,
    bytes_of,
    files_of,
)
from pilotlight_core.model.versions.pushed_weights import weights_digest
from pilotlight_runtime.containers.files.bundle import CannotVerify, check_digests, check_paths
from pilotlight_runtime.containers.files.file_cache import JOINED


class ArtifactFile(msgspec.Struct, frozen=True):
    """A file of an artifact."""

    entry: FileEntry
    """Its path below the folder of all artifacts, its name in the cache, and its bytes."""
    parts: tuple[ArtifactPart, ...]


def artifact_files(artifacts: Iterable[ArtifactEntry]) -> list[ArtifactFile]:
    """Every file of every artifact; those of several parts are cached whole, under a name made from the parts'."""
    return [
        ArtifactFile(
            FileEntry(f"{artifact.name}/{parts[0].path}", _key(parts), sum(part.size for part in parts)), parts
        )
        for artifact in artifacts
        for parts in files_of(artifact)
    ]


def check_artifacts(artifacts: tuple[ArtifactEntry, ...]) -> None:
    """Raise CannotVerify unless artifacts are within their bounds, and have names, paths, digests and sizes to use."""
    parts = [part for artifact in artifacts for part in artifact.parts]
    if len(artifacts) > MAX_ARTIFACTS or len(parts) > MAX_PARTS:
        raise CannotVerify(f"The version has more than {MAX_ARTIFACTS} artifacts or {MAX_PARTS} parts of them.")
    if any(part.size > PART_BYTES for part in parts):
        raise CannotVerify(f"An artifact has a part of more than {PART_BYTES} bytes.")
    if bytes_of(artifacts) > MAX_ARTIFACT_BYTES:
        raise CannotVerify(f"The version's artifacts have more than {MAX_ARTIFACT_BYTES} bytes.")
    for artifact in artifacts:
        try:
            check_name(artifact.name, "name")
        except BadInput as error:
            raise CannotVerify(f"An artifact cannot be called {artifact.name!r}.") from error
        if artifact.digest and weights_digest(artifact.parts) != artifact.digest:
            raise CannotVerify(f"The weights {artifact.name} have other parts than their digest says.")
    if len({artifact.name for artifact in artifacts}) < len(artifacts):
        raise CannotVerify("Two artifacts of the version have the same name.")
    check_paths([file.entry.path for file in artifact_files(artifacts)])
    check_digests(parts)


def _key(parts: tuple[ArtifactPart, ...]) -> str:
    if len(parts) == 1:
        return parts[0].sha256
    return f"{JOINED}{hashlib.sha256(''.join(part.sha256 for part in parts).encode()).hexdigest()}"
