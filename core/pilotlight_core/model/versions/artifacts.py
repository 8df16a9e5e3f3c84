"""Artifacts of a version: weights, tokenizers, adapters, configurations and bills of material, beside its bundle.

A large file is stored in parts, so that several can be read at once and each is checked by its digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from pilotlight_core.model.spec import ArtifactEntry, ArtifactInfo, ArtifactPart

PART_BYTES = 64 * 2**20
"""Of one part at most: what is sent again after a broken connection, and less than an upload may have."""
MAX_ARTIFACTS = 32
"""Of one app."""
MAX_PARTS = 10_000
"""Of all artifacts of an app. Every part is named in the manifest, which is read whole."""
MAX_ARTIFACT_BYTES = 256 * 2**30
"""Of all artifacts of an app: of all parts that its files name, however often they name one."""


def files_of(artifact: ArtifactEntry) -> Iterator[tuple[ArtifactPart, ...]]:
    """Yield each file of an artifact as its parts in order."""
    for _, parts in groupby(artifact.parts, key=lambda part: part.path):
        yield tuple(parts)


def parts_of(artifacts: Iterable[ArtifactEntry]) -> Iterator[ArtifactPart]:
    """Yield all parts of all artifacts."""
    for artifact in artifacts:
        yield from artifact.parts


def bytes_of(artifacts: Iterable[ArtifactEntry]) -> int:
    """The size of all files of all artifacts, as they lie on a node."""
    return sum(part.size for part in parts_of(artifacts))


def artifact_info(artifact: ArtifactEntry) -> ArtifactInfo:
    """What is shown of an artifact."""
    return ArtifactInfo(
        kind=artifact.kind,
        name=artifact.name,
        files=sum(1 for _ in files_of(artifact)),
        size=bytes_of((artifact,)),
        digest=artifact.digest,
    )
