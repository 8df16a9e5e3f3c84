"""The rules for a deploy's artifacts. Agents create their files, so no name is trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pilotlight_core.model.api.call_api import DeployRequest
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
    parts_of,
)
from pilotlight_gateway.bodies.bundles import check_content, check_path, check_together


def check_artifacts(request: DeployRequest) -> None:
    """Refuse artifacts that are too many, that agents could not create as named, or that no function uses.

    Raises:
        BadInput: names the artifact, part or function.
    """
    artifacts = request.artifacts
    if len(artifacts) > MAX_ARTIFACTS:
        raise BadInput(
            f"artifacts: expected at most {MAX_ARTIFACTS} artifacts, got {len(artifacts)}.", field="artifacts"
        )
    if (parts := sum(len(artifact.parts) for artifact in artifacts)) > MAX_PARTS:
        raise BadInput(f"artifacts: expected at most {MAX_PARTS} parts in all, got {parts}.", field="artifacts")
    if (size := bytes_of(artifacts)) > MAX_ARTIFACT_BYTES:
        raise BadInput(f"artifacts: expected at most {MAX_ARTIFACT_BYTES} bytes in all, got {size}.", field="artifacts")
    for index, artifact in enumerate(artifacts):
        _check_artifact(artifact, f"artifacts.{index}")
    _check_names(request)
    _check_sizes_agree(request)


def check_part_sizes(request: DeployRequest, sizes: Mapping[str, int]) -> None:
    """Refuse a part whose size is not that of its content (`sizes`: bytes by digest).

    Raises:
        BadInput: names the part.
    """
    for index, artifact in enumerate(request.artifacts):
        for number, part in enumerate(artifact.parts):
            if (size := sizes.get(part.sha256, part.size)) != part.size:
                field = f"artifacts.{index}.parts.{number}.size"
                raise BadInput(f"{field}: {part.path!r} has {size} bytes there, not {part.size}.", field=field)


def repeated_sizes(parts: Iterable[ArtifactPart]) -> list[int]:
    """The size of each part that one before it has the content of."""
    seen: set[str] = set()
    sizes = []
    for part in parts:
        if part.sha256 in seen:
            sizes.append(part.size)
        seen.add(part.sha256)
    return sizes


def _check_artifact(artifact: ArtifactEntry, field: str) -> None:
    check_name(artifact.name, f"{field}.name")
    if not artifact.parts:
        raise BadInput(f"{field}.parts: {artifact.name} has no file.", field=f"{field}.parts")
    if artifact.digest:
        raise BadInput(f"{field}.digest: only weights that were pushed have one.", field=f"{field}.digest")
    check_parts(artifact, f"{field}.parts", most=PART_BYTES)


def check_parts(artifact: ArtifactEntry, field: str, *, most: int, allow_pickles: bool = False) -> None:
    """Refuse parts of more than `most` bytes, and files that agents could not create as named.

    Raises:
        BadInput: names the part of `field`.
    """
    for number, part in enumerate(artifact.parts):
        check_path(part.path, f"{field}.{number}.path")
        check_content(part, f"{field}.{number}", most, allow_pickles=allow_pickles)
    # A path that comes again after another one is found here to be one that stands twice.
    files = [
        FileEntry(path=parts[0].path, sha256=str(number), size=0) for number, parts in enumerate(files_of(artifact))
    ]
    check_together(files, field)


def _check_names(request: DeployRequest) -> None:
    known = Counter(artifact.name for artifact in request.artifacts)
    for name, count in known.items():
        if count > 1:
            raise BadInput(f"artifacts: two are called {name!r}.", field="artifacts")
    for index, function in enumerate(request.functions):
        field = f"functions.{index}.artifacts"
        if len(set(function.artifacts)) != len(function.artifacts):
            raise BadInput(f"{field}: {function.spec.name} names an artifact twice.", field=field)
        if missing := [name for name in function.artifacts if name not in known]:
            raise BadInput(
                f"{field}: {function.spec.name} names {missing[0]!r}, which is no artifact of this deploy.", field=field
            )
    used = {name for function in request.functions for name in function.artifacts}
    if unused := [name for name in known if name not in used]:
        raise BadInput(f"artifacts: no function uses {unused[0]!r}.", field="artifacts")


def _check_sizes_agree(request: DeployRequest) -> None:
    sizes = {entry.sha256: entry.size for entry in request.files}
    for part in parts_of(request.artifacts):
        if sizes.setdefault(part.sha256, part.size) != part.size:
            raise BadInput(
                f"artifacts: {part.path!r} has a digest that stands with another size too.", field="artifacts"
            )
